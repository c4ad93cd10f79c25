#!lua flags=allow-oom
-- Set the number of a list's archived posts, unless the floor or the number has changed since the rows were counted.
-- Each cut raises the floor, and each deletion of an archived post lowers the number.
-- KEYS: 1 the list   2 the number of its archived posts   3 for a list under a post: post:{p}
-- ARGV: 1 floor   2 former number, '' if there was none   3 new number
--       4 the field of post:{p} with the length of the list, or ''
-- Returns 1, or 0 if the floor or the number has changed.
local floor = redis.call('ZSCORE', KEYS[1], 'f')
if tonumber(floor or 0) ~= tonumber(ARGV[1]) then return 0 end
if (redis.call('GET', KEYS[2]) or '') ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[2], ARGV[3])
if KEYS[3] and redis.call('HEXISTS', KEYS[3], 'deleted') == 0 then
  local length = redis.call('ZCARD', KEYS[1]) - (floor and 1 or 0) + ARGV[3]
  if length > 0 then redis.call('HSET', KEYS[3], ARGV[4], length) else redis.call('HDEL', KEYS[3], ARGV[4]) end
end
return 1
