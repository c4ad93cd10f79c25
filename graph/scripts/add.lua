#!lua
-- Add elements to versioned sets, each only if its number is above the element's version.
-- KEYS: for each owner the set, its tombstones and, if ARGV 1 is 3, a home cache to forget if anything changed
-- ARGV: 1 keys of one owner, 2 or 3   2 for each owner an array of numbers and members by turns, strings, as JSON
-- Returns how many were applied.
local stride, applied, tombs = tonumber(ARGV[1]), 0, {}
for i = 2, #KEYS, stride do tombs[#tombs + 1] = KEYS[i] end
local pristine = redis.call('EXISTS', unpack(tombs)) == 0
for place, changes in ipairs(cjson.decode(ARGV[2])) do
  local i, before = (place - 1) * stride + 1, applied
  local set, gone = KEYS[i], KEYS[i + 1]
  if pristine or redis.call('EXISTS', gone) == 0 then
    -- Without tombstones and their floor the score alone is the version.
    applied = applied + redis.call('ZADD', set, 'GT', 'CH', unpack(changes))
  else
    local floor = redis.call('ZSCORE', gone, 'f') or 0
    for j = 1, #changes, 2 do
      local number, member = changes[j], changes[j + 1]
      local version = redis.call('ZSCORE', set, member) or redis.call('ZSCORE', gone, member) or floor
      if tonumber(number) > tonumber(version) then
        redis.call('ZADD', set, number, member)
        redis.call('ZREM', gone, member)
        applied = applied + 1
      end
    end
  end
  if stride == 3 and applied > before then redis.call('UNLINK', KEYS[i + 2]) end
end
return applied
