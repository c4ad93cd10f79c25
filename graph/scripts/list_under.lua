#!lua flags=allow-oom
-- Add posts to lists under other posts, such as replies, and store the lengths of the lists in the records of these posts.
-- KEYS: for each post the list, its tombstones, the number of its archived posts, and post:{p} of its owner
-- ARGV: 1 the field of the length   then the posts
-- Returns the number of posts that were new.
local new = 0
for i = 1, #KEYS, 4 do
  local list, gone, record = KEYS[i], KEYS[i + 1], KEYS[i + 3]
  local post = ARGV[1 + (i + 3) / 4]
  local archived = redis.call('ZSCORE', list, 'f')
  local floor = math.max(tonumber(archived or 0), tonumber(redis.call('ZSCORE', gone, 'f') or 0))
  if tonumber(post) > floor and not redis.call('ZSCORE', gone, post) then
    new = new + redis.call('ZADD', list, 'NX', post, post)
  end
  local length = redis.call('ZCARD', list) - (archived and 1 or 0) + (redis.call('GET', KEYS[i + 2]) or 0)
  if redis.call('HEXISTS', record, 'deleted') == 0 and length > 0 then redis.call('HSET', record, ARGV[1], length) end
end
return new
