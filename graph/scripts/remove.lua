#!lua flags=allow-oom
-- Remove elements from a versioned set, and write tombstones. An element is removed if the number of its event is above
-- its version. Old tombstones are then replaced by the tombstone floor.
-- KEYS: 1 the set   2 its tombstones   3 optional: a home cache to delete if the set changes
-- ARGV: 1 highest number of a tombstone that may be trimmed   then pairs of member and number
-- Returns for each pair 1 if the element was removed, else 0.
local floor = tonumber(redis.call('ZSCORE', KEYS[2], 'f') or 0)
local removed, changed = {}, false
for i = 2, #ARGV, 2 do
  local version = redis.call('ZSCORE', KEYS[1], ARGV[i]) or redis.call('ZSCORE', KEYS[2], ARGV[i]) or floor
  if tonumber(ARGV[i + 1]) > tonumber(version) then
    if KEYS[3] and not changed then redis.call('UNLINK', KEYS[3]) end
    redis.call('ZREM', KEYS[1], ARGV[i])
    redis.call('ZADD', KEYS[2], ARGV[i + 1], ARGV[i])
    removed[#removed + 1], changed = 1, true
  else
    removed[#removed + 1] = 0
  end
end
local oldest = redis.call('ZRANGE', KEYS[2], ARGV[1], '(' .. string.format('%.0f', floor), 'BYSCORE', 'REV',
  'LIMIT', 0, 1, 'WITHSCORES')
if #oldest > 0 then
  redis.call('ZADD', KEYS[2], 'inf', 'f')
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[1])
  redis.call('ZADD', KEYS[2], oldest[2], 'f')
end
return removed
