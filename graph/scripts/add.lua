#!lua
-- Add elements to versioned sets, each only if its number is above the element's version.
-- KEYS: for each owner the set, its tombstones and, if ARGV 1 is 3, a home cache to forget if anything changed
-- ARGV: 1 keys of one owner, 2 or 3   then for each owner how many words follow, and pairs of member and number
-- Returns how many were applied.
local stride, at, applied = tonumber(ARGV[1]), 2, 0
for i = 1, #KEYS, stride do
  local set, gone = KEYS[i], KEYS[i + 1]
  local floor = redis.call('ZSCORE', gone, 'f') or 0
  local last, before = at + tonumber(ARGV[at]), applied
  for j = at + 1, last, 2 do
    local member, number = ARGV[j], ARGV[j + 1]
    local version = redis.call('ZSCORE', set, member) or redis.call('ZSCORE', gone, member) or floor
    if tonumber(number) > tonumber(version) then
      redis.call('ZADD', set, number, member)
      redis.call('ZREM', gone, member)
      applied = applied + 1
    end
  end
  if stride == 3 and applied > before then redis.call('UNLINK', KEYS[i + 2]) end
  at = last + 1
end
return applied
