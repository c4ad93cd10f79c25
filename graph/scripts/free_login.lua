#!lua flags=allow-oom
-- Delete the login of a deleted user, with the failed log-ins and the networks of the user.
-- KEYS: 1 login:{x}   2 attempts:{x}   3 networks:{x}   ARGV: 1 user
-- Returns 1, or 0 if the login does not belong to the user.
if redis.call('HGET', KEYS[1], 'user') ~= ARGV[1] then return 0 end
redis.call('DEL', unpack(KEYS))
return 1
