#!lua flags=allow-oom
-- Load live likes into the sets of posts or users during a rebuild, in ascending order, and keep the newest ones only.
-- The script can be repeated: likes at or below the archive floor were loaded and archived before. Then load tombstones
-- of unlikes, except those that a later like has replaced.
-- KEYS: for each owner the set and its tombstones; for a post also likes:{p}:cold and post:{p}
-- ARGV: 1 keys per owner, 2 or 4   2 maximum number of likes in a set   3 likes to keep of a set that has more
--       4 JSON: for each owner a flat array of members and numbers of likes, negative for unlikes
-- Returns the number of members that were added.
local stride, most, kept, added = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), 0
for owner, likes in ipairs(cjson.decode(ARGV[4])) do
  local set, gone, cold, post = unpack(KEYS, stride * (owner - 1) + 1, stride * owner)
  local floor = floor_of(set)
  for i = 1, #likes, 2 do
    local member, word = likes[i], likes[i + 1]
    local number = tonumber(word)
    if number > floor then
      added = added + redis.call('ZADD', set, word, member)
    elseif -number > floor and not redis.call('ZSCORE', set, member) then
      redis.call('ZADD', gone, 'GT', string.sub(word, 2), member)
    end
  end
  local size = redis.call('ZCARD', set) - (floor > 0 and 1 or 0)
  if size > most then
    local surplus = redis.call('ZRANGE', set, floor > 0 and 1 or 0, size - kept - (floor > 0 and 0 or 1), 'WITHSCORES')
    local last = surplus[#surplus]
    redis.call('ZREMRANGEBYSCORE', set, '-inf', last)
    redis.call('ZADD', set, last, 'f')
    if cold then redis.call('INCRBY', cold, #surplus / 2) end
    size, floor = kept, tonumber(last)
  end
  if post and size > 0 then redis.call('HSET', post, 'likes', size + tonumber(redis.call('GET', cold) or 0)) end
end
return added
