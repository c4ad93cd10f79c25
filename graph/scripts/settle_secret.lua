#!lua flags=allow-oom
-- Set the new password hash of a login. Of several changes, the one with the highest number wins.
-- KEYS: 1 login:{x}   2 login:{x}:next:<nonce>   ARGV: 1 user   2 number of the PasswordChanged event
-- Returns 'set'; 'void' if the new hash is gone, so that the old one stays under the new number; 'old' if a change with
-- this number or a higher one is set, or if the login is unknown or belongs to another user.
local held = redis.call('HMGET', KEYS[1], 'user', 'nonce', 'secret:at')
local secret = redis.call('GET', KEYS[2])
redis.call('DEL', KEYS[2])
if (held[1] or ARGV[1]) ~= ARGV[1] or not held[2] then return 'old' end
if held[3] and tonumber(held[3]) >= tonumber(ARGV[2]) then return 'old' end
redis.call('HSET', KEYS[1], 'secret:at', ARGV[2])
if not secret then return 'void' end
redis.call('HSET', KEYS[1], 'secret', secret)
return 'set'
