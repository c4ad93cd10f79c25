#!lua flags=allow-oom
-- Compute the length of a list under a post again, and store it in the record of the post.
-- KEYS: 1 the list   2 the number of its archived posts   3 post:{p}
-- ARGV: 1 the field of the length
-- Returns 1.
local hot = redis.call('ZCARD', KEYS[1]) - (redis.call('ZSCORE', KEYS[1], 'f') and 1 or 0)
local length = hot + (redis.call('GET', KEYS[2]) or 0)
if length > 0 and redis.call('HEXISTS', KEYS[3], 'deleted') == 0 then
  redis.call('HSET', KEYS[3], ARGV[1], length)
else
  redis.call('HDEL', KEYS[3], ARGV[1])
end
return 1
