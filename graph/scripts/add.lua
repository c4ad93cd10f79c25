#!lua flags=allow-oom
-- Add elements to versioned sets. An element is added if the number of its event is above its version.
-- KEYS: for each owner the set, its tombstones and, if ARGV 1 is 3, a home cache to delete if the set changes
-- ARGV: 1 keys per owner, 2 or 3   2 JSON: for each owner a flat array of numbers and members, as strings
-- Returns the number of changes.
local stride, changed, tombstones = tonumber(ARGV[1]), 0, {}
for i = 2, #KEYS, stride do tombstones[#tombstones + 1] = KEYS[i] end
local no_tombstones = redis.call('EXISTS', unpack(tombstones)) == 0
for owner, changes in ipairs(cjson.decode(ARGV[2])) do
  local i, before = (owner - 1) * stride + 1, changed
  local set, gone = KEYS[i], KEYS[i + 1]
  if no_tombstones or redis.call('EXISTS', gone) == 0 then
    -- Without tombstones and their floor, the score alone is the version.
    changed = changed + redis.call('ZADD', set, 'GT', 'CH', unpack(changes))
  else
    local floor = floor_of(gone)
    for j = 1, #changes, 2 do
      local number, member = changes[j], changes[j + 1]
      if tonumber(number) > version(floor, member, set, gone) then
        place(set, number, member, gone)
        changed = changed + 1
      end
    end
  end
  if stride == 3 and changed > before then redis.call('UNLINK', KEYS[i + 2]) end
end
return changed
