#!lua
-- Make a claimed login the account of a user, once and for ever.
-- KEYS: 1 login:{x}   ARGV: 1 nonce   2 number of the UserCreated fact   3 the sign-up that asks, '' for a projection
-- Returns 'won' (this sign-up, or a projection), 'lost' (settled for another sign-up of the same claim) or 'void'.
local held = redis.call('HMGET', KEYS[1], 'nonce', 'user', 'winner')
if held[1] ~= ARGV[1] or (held[2] and held[2] ~= ARGV[2]) then return 'void' end
if not held[2] then
  redis.call('HSET', KEYS[1], 'user', ARGV[2])
  redis.call('PERSIST', KEYS[1])
end
if ARGV[3] == '' then return 'won' end
if redis.call('HSETNX', KEYS[1], 'winner', ARGV[3]) == 1 then return 'won' end
return redis.call('HGET', KEYS[1], 'winner') == ARGV[3] and 'won' or 'lost'
