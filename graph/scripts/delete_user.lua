#!lua flags=allow-oom
-- Replace the profile of a user by a tombstone, which prevents all later steps in this slot, and end all sessions.
-- KEYS: 1 user:{u}   2 session:{u}   3 session:{u}:details   ARGV: 1 number of the UserDeleted event
-- Returns 1, or 0 if the user was deleted before.
if redis.call('HEXISTS', KEYS[1], 'deleted') == 1 then return 0 end
redis.call('DEL', KEYS[2], KEYS[3])
local fields = redis.call('HKEYS', KEYS[1])
redis.call('HSET', KEYS[1], 'deleted', ARGV[1])
if #fields > 0 then redis.call('HDEL', KEYS[1], unpack(fields)) end
return 1
