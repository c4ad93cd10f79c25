#!lua flags=allow-oom
-- Apply an event of a list of users: create, change or delete it. Each part is a register: the event with the highest
-- number decides on the name, and on each member. A deleted list stays deleted: no other event changes it. Old tombstones
-- are then replaced by their floor.
-- KEYS: 1 lists:{u}   2 its tombstones   3 lists:{u}:names   4 list:{u}:<list>   5 its tombstones
-- ARGV: 1 list   2 number of the event   3 'create', 'change' or 'delete'   4 highest number of a tombstone that may be
--       trimmed   5 name, '' for no change   6 number of users to add   then the users to add, and those to remove
-- Returns the number of changes; a deletion returns 1 if the list was not deleted before.
local list, number, changed = ARGV[1], ARGV[2], 0
local floor_of = function(gone) return tonumber(redis.call('ZSCORE', gone, 'f') or 0) end
local trim = function(gone)
  local oldest = redis.call('ZRANGE', gone, ARGV[4], '(' .. string.format('%.0f', floor_of(gone)), 'BYSCORE', 'REV',
    'LIMIT', 0, 1, 'WITHSCORES')
  if #oldest > 0 then
    redis.call('ZADD', gone, 'inf', 'f')
    redis.call('ZREMRANGEBYSCORE', gone, '-inf', ARGV[4])
    redis.call('ZADD', gone, oldest[2], 'f')
  end
end
local apply = function(set, gone, floor, member, version, from, to)
  local last = redis.call('ZSCORE', set, member) or redis.call('ZSCORE', gone, member) or floor
  if tonumber(version) <= tonumber(last) then return end
  redis.call('ZREM', from, member)
  redis.call('ZADD', to, version, member)
  changed = changed + 1
end
if ARGV[3] == 'delete' then
  apply(KEYS[1], KEYS[2], floor_of(KEYS[2]), list, number, KEYS[1], KEYS[2])
  redis.call('HDEL', KEYS[3], list, list .. ':at')
  redis.call('UNLINK', KEYS[4], KEYS[5])
  trim(KEYS[2])
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
  local from, to = KEYS[4], KEYS[5]
  if i <= last_added then from, to = KEYS[5], KEYS[4] end
  apply(KEYS[4], KEYS[5], floor, ARGV[i], number, from, to)
end
trim(KEYS[5])
return changed
