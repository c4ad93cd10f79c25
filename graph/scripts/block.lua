#!lua flags=allow-oom
-- Apply blocks and unblocks to the slot of one of the two users, and put the follows between them where they belong. An
-- event applies if its number is above the version of the block. Old tombstones are then replaced by their floor.
-- KEYS: 1 the set of blocks, blocking:{u} or blockers:{u}   2 its tombstones   3 the set of the other direction   4 its
--       tombstones   5 following:{u}   6 its tombstones   7 its held follows   8 followers:{u}   9 its tombstones
--       10 its held follows   11 optional: a home cache to delete, even if nothing changes
-- ARGV: 1 highest number of a tombstone that may be trimmed
--       then triples of the other user, number, and 'block' or 'unblock'
-- Returns the number of events that applied.
local floor, applied = floor_of(KEYS[2]), 0
-- A follow counts if no block stands and its number exceeds the pair's last block or unblock. It is held if only a
-- block stands in its way, and becomes a tombstone if it can never count again.
local function put(set, gone, held, user, standing, last)
  local number = redis.call('ZSCORE', set, user) or redis.call('ZSCORE', held, user)
  if not number then return end
  local target = set
  if tonumber(number) <= last then target = gone elseif standing > 0 then target = held end
  place(target, number, user, set, held)
end
for i = 2, #ARGV, 3 do
  local user, number = ARGV[i], ARGV[i + 1]
  if tonumber(number) > version(floor, user, KEYS[1], KEYS[2]) then
    local from, to = KEYS[1], KEYS[2]
    if ARGV[i + 2] == 'block' then from, to = KEYS[2], KEYS[1] end
    local standing = score(KEYS[3], user)
    if to == KEYS[1] then standing = math.max(standing, tonumber(number)) end
    local last = math.max(standing, tonumber(number), score(KEYS[4], user))
    put(KEYS[5], KEYS[6], KEYS[7], user, standing, last)
    put(KEYS[8], KEYS[9], KEYS[10], user, standing, last)
    -- The version is written last, so that a repetition after a failure also moves the follows.
    place(to, number, user, from)
    applied = applied + 1
  end
end
if KEYS[11] then redis.call('UNLINK', KEYS[11]) end
trim(KEYS[2], floor, ARGV[1])
return applied
