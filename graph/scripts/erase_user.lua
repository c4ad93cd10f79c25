#!lua flags=allow-oom
-- Delete what is left in the slot of an erased user. Each set, and the list of notifications, keeps a floor, so that
-- late events change nothing.
-- KEYS: 1 notifications:{u}   2 notifications:{u}:read   then the versioned sets, each with its tombstones
--       then other keys to delete
-- ARGV: 1 number of the UserErased event   2 number of the keys up to the last tombstones
-- Returns 1, or 0 if a later event has already erased the user.
local number, last = ARGV[1], tonumber(ARGV[2])
if tonumber(redis.call('GET', KEYS[2]) or 0) > tonumber(number) then return 0 end
redis.call('UNLINK', unpack(KEYS))
redis.call('ZADD', KEYS[1], number, 'f')
redis.call('SET', KEYS[2], number)
for i = 4, last, 2 do redis.call('ZADD', KEYS[i], number, 'f') end
return 1
