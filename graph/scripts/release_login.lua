#!lua flags=allow-oom
-- Release the claim of a login, unless it has another nonce or has become an account.
-- KEYS: 1 login:{x}   ARGV: 1 nonce
-- Returns 1, or 0 if there is no such claim.
local held = redis.call('HMGET', KEYS[1], 'nonce', 'user')
if held[1] ~= ARGV[1] or held[2] then return 0 end
return redis.call('DEL', KEYS[1])
