#!lua flags=allow-oom
-- Add posts to the sets of posts that users like, and remove them. A change applies if its number is above the version of
-- the post: its score, else that of its tombstone, else the higher floor. Old tombstones are then trimmed.
-- KEYS: for each user liked:{u}, liked:{u}:gone
-- ARGV: 1 highest number of a tombstone that may be trimmed
--       2 JSON: for each user a flat array with, for each change, the post and the number of the event (negative for an
--         unlike)
-- Returns the number of changes that were applied.
local applied = 0
for place, changes in ipairs(cjson.decode(ARGV[2])) do
  local set, gone = unpack(KEYS, 2 * place - 1, 2 * place)
  local trimmed, unliked = tonumber(redis.call('ZSCORE', gone, 'f') or 0), false
  local floor = math.max(tonumber(redis.call('ZSCORE', set, 'f') or 0), trimmed)
  for i = 1, #changes, 2 do
    local post, word = changes[i], changes[i + 1]
    local version = redis.call('ZSCORE', set, post) or redis.call('ZSCORE', gone, post) or floor
    if math.abs(tonumber(word)) > tonumber(version) then
      applied = applied + 1
      if tonumber(word) > 0 then
        redis.call('ZADD', set, word, post)
        redis.call('ZREM', gone, post)
      else
        redis.call('ZREM', set, post)
        redis.call('ZADD', gone, string.sub(word, 2), post)
        unliked = true
      end
    end
  end
  if unliked then
    local oldest = redis.call('ZRANGE', gone, ARGV[1], '(' .. string.format('%.0f', trimmed), 'BYSCORE', 'REV',
      'LIMIT', 0, 1, 'WITHSCORES')
    if #oldest > 0 then
      redis.call('ZADD', gone, 'inf', 'f')
      redis.call('ZREMRANGEBYSCORE', gone, '-inf', ARGV[1])
      redis.call('ZADD', gone, oldest[2], 'f')
    end
  end
end
return applied
