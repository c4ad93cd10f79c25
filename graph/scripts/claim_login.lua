#!lua
-- Claim a login for a while, unless it is claimed or taken.
-- KEYS: 1 login:{x}   ARGV: 1 secret or ''   2 nonce   3 seconds that the claim lasts
-- Returns {'claimed', nonce}, {'pending', secret, nonce} or {'taken'}.
local held = redis.call('HMGET', KEYS[1], 'secret', 'nonce', 'user')
if held[3] then return {'taken'} end
if held[2] == ARGV[2] then return {'claimed', held[2]} end
if held[2] then return {'pending', held[1] or '', held[2]} end
redis.call('HSET', KEYS[1], 'secret', ARGV[1], 'nonce', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return {'claimed', ARGV[2]}
