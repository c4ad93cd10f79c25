#!lua flags=allow-oom
-- Apply an event of a list of users: create, change or delete it. Each part is a register: the event with the highest
-- number decides on the name, and on each member. A deleted list stays deleted: no other event changes it. Old tombstones
-- are then replaced by their floor.
-- KEYS: 1 lists:{u}   2 its tombstones   3 lists:{u}:names   4 list:{u}:<list>   5 its tombstones
-- ARGV: 1 list   2 number of the event   3 'create', 'change' or 'delete'   4 highest number of a tombstone that may be
--       trimmed   5 name, '' for no change   6 number of users to add   then the users to add, and those to remove
-- Returns the number of changes; a deletion returns 1 if the list was not deleted before.
local list, number, changed = ARGV[1], ARGV[2], 0
local function apply(floor, member, to, from)
  if tonumber(number) <= version(floor, member, to, from) then return end
  place(to, number, member, from)
  changed = changed + 1
end
if ARGV[3] == 'delete' then
  apply(floor_of(KEYS[2]), list, KEYS[2], KEYS[1])
  redis.call('HDEL', KEYS[3], list, list .. ':at')
  redis.call('UNLINK', KEYS[4], KEYS[5])
  trim(KEYS[2], floor_of(KEYS[2]), ARGV[4])
  return changed
end
if not redis.call('ZSCORE', KEYS[1], list) then
  if redis.call('ZSCORE', KEYS[2], list) or tonumber(list) <= floor_of(KEYS[2]) then return 0 end
  if ARGV[3] == 'create' then changed = redis.call('ZADD', KEYS[1], list, list) end
end
if ARGV[5] ~= '' and tonumber(number) > tonumber(redis.call('HGET', KEYS[3], list .. ':at') or 0) then
  redis.call('HSET', KEYS[3], list, ARGV[5], list .. ':at', number)
  changed = changed + 1
end
local floor, last_added = floor_of(KEYS[5]), 6 + tonumber(ARGV[6])
for i = 7, #ARGV do
  local to, from = KEYS[5], KEYS[4]
  if i <= last_added then to, from = from, to end
  apply(floor, ARGV[i], to, from)
end
trim(KEYS[5], floor, ARGV[4])
return changed
