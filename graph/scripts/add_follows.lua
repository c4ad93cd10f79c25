#!lua flags=allow-oom
-- Add follows to lists of followed users or of followers. A follow is added if the number of its event is above the
-- version of the follow. It becomes a member, unless a block stands between the two users: then it is held. If its number
-- does not exceed the pair's last block or unblock, it can never count, and becomes a tombstone.
-- KEYS: for each owner the set, its tombstones, its held follows, blocking:{u}, its tombstones, blockers:{u}, its
--       tombstones and, if ARGV 1 is 8, a home cache to delete if a follow changes
-- ARGV: 1 keys per owner, 7 or 8   2 JSON: for each owner a flat array of numbers and users, as strings
-- Returns the number of changes.
local stride, changed, others = tonumber(ARGV[1]), 0, {}
for i = 1, #KEYS, stride do
  for j = i + 1, i + 6 do others[#others + 1] = KEYS[j] end
end
local plain = redis.call('EXISTS', unpack(others)) == 0
for owner, changes in ipairs(cjson.decode(ARGV[2])) do
  local i, before = (owner - 1) * stride + 1, changed
  local set, gone, held = KEYS[i], KEYS[i + 1], KEYS[i + 2]
  if plain then
    -- Without blocks, held follows, tombstones and their floor, the score alone is the version.
    changed = changed + redis.call('ZADD', set, 'GT', 'CH', unpack(changes))
  else
    local floor = floor_of(gone)
    for j = 1, #changes, 2 do
      local number, user = changes[j], changes[j + 1]
      if tonumber(number) > version(floor, user, set, held, gone) then
        local standing = math.max(score(KEYS[i + 3], user), score(KEYS[i + 5], user))
        local last = math.max(standing, score(KEYS[i + 4], user), score(KEYS[i + 6], user))
        local target = set
        if tonumber(number) <= last then target = gone elseif standing > 0 then target = held end
        place(target, number, user, set, gone, held)
        changed = changed + 1
      end
    end
  end
  if stride == 8 and changed > before then redis.call('UNLINK', KEYS[i + 7]) end
end
return changed
