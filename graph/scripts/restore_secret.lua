#!lua flags=allow-oom
-- Give a password hash back to a login whose shard has lost the change.
-- KEYS: 1 login:{x}   ARGV: 1 password hash   2 user   3 number of the PasswordChanged event that set the hash
-- Returns 1, or 0 if the login has this change or a later one, or belongs to another user.
local held = redis.call('HMGET', KEYS[1], 'user', 'secret:at')
if held[1] ~= ARGV[2] or (held[2] and tonumber(held[2]) >= tonumber(ARGV[3])) then return 0 end
redis.call('HSET', KEYS[1], 'secret', ARGV[1], 'secret:at', ARGV[3])
return 1
