#!lua flags=allow-oom
-- Turn claimed logins into the accounts of users, permanently.
-- KEYS: login:{x} for each
-- ARGV: 1 id of the sign-up, '' for a projection   then for each: nonce, number of the UserCreated event
-- Returns for each 'won' (the account belongs to this sign-up; always for a projection), 'lost' (to another sign-up of
-- the same claim) or 'void' (there is no such claim).
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
