#!lua
-- Remove elements from a versioned set, each only if its number is above the element's version; leave tombstones.
-- Tombstones up to a number that nobody can still need make way for the tombstone floor.
-- KEYS: 1 the set   2 its tombstones   3 optional: a home cache to forget if anything changed
-- ARGV: 1 highest tombstone that may be trimmed   then pairs of member and number
-- Returns 1 or 0 for each pair: whether it was applied.
local floor = tonumber(redis.call('ZSCORE', KEYS[2], 'f') or 0)
local applied, changed = {}, false
for i = 2, #ARGV, 2 do
  local version = redis.call('ZSCORE', KEYS[1], ARGV[i]) or redis.call('ZSCORE', KEYS[2], ARGV[i]) or floor
  if tonumber(ARGV[i + 1]) > tonumber(version) then
    redis.call('ZREM', KEYS[1], ARGV[i])
    redis.call('ZADD', KEYS[2], ARGV[i + 1], ARGV[i])
    applied[#applied + 1], changed = 1, true
  else
    applied[#applied + 1] = 0
  end
end
if changed and KEYS[3] then redis.call('UNLINK', KEYS[3]) end
local oldest = redis.call('ZRANGE', KEYS[2], ARGV[1], '(' .. string.format('%.0f', floor), 'BYSCORE', 'REV',
  'LIMIT', 0, 1, 'WITHSCORES')
if #oldest > 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[1])
  redis.call('ZADD', KEYS[2], oldest[2], 'f')
end
return applied
