#!lua flags=allow-oom
-- Suspend a user and end all sessions of the user, or lift the suspension. The event with the highest number counts. A
-- deleted user has neither sessions nor a suspension.
-- KEYS: 1 user:{u}   2 session:{u}   3 session:{u}:details
-- ARGV: 1 number of the event, negative if it lifts the suspension
-- Returns 1 if the event is the newest one and the user is not deleted, else 0.
if redis.call('HEXISTS', KEYS[1], 'deleted') == 1 then return 0 end
local number, before = tonumber(ARGV[1]), tonumber(redis.call('HGET', KEYS[1], 'suspended') or 0)
if math.abs(number) < math.abs(before) then return 0 end
redis.call('HSET', KEYS[1], 'suspended', ARGV[1])
if number > 0 then redis.call('DEL', KEYS[2], KEYS[3]) end
return 1
