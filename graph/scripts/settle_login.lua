#!lua
-- Make claimed logins the accounts of users, once and for ever.
-- KEYS: login:{x} of each
-- ARGV: 1 the sign-up that asks, '' for a projection   then for each its nonce and the number of its UserCreated event
-- Returns for each 'won' (this sign-up, or a projection), 'lost' (settled for another sign-up of the same claim) or
-- 'void'.
local outcomes = {}
for i, key in ipairs(KEYS) do
  local nonce, number = ARGV[2 * i], ARGV[2 * i + 1]
  local held = redis.call('HMGET', key, 'nonce', 'user')
  if held[1] ~= nonce or (held[2] and held[2] ~= number) then
    outcomes[i] = 'void'
  else
    if not held[2] then
      redis.call('HSET', key, 'user', number)
      redis.call('PERSIST', key)
    end
    if ARGV[1] == '' or redis.call('HSETNX', key, 'winner', ARGV[1]) == 1 then
      outcomes[i] = 'won'
    else
      outcomes[i] = redis.call('HGET', key, 'winner') == ARGV[1] and 'won' or 'lost'
    end
  end
end
return outcomes
