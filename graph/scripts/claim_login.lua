#!lua
-- Claim logins for a limited time, except those that are claimed or taken.
-- KEYS: login:{x} for each   ARGV: 1 lifetime of a claim in seconds   then for each: secret or '', nonce
-- Returns for each {'claimed', nonce, secret}, {'pending', secret, nonce} or {'taken'}. The secret is the one that
-- is stored: if a claim is repeated with the same nonce, the first one.
local outcomes = {}
for i, key in ipairs(KEYS) do
  local secret, nonce = ARGV[2 * i], ARGV[2 * i + 1]
  local held = redis.call('HMGET', key, 'secret', 'nonce', 'user')
  if held[3] then
    outcomes[i] = {'taken'}
  elseif held[2] and held[2] ~= nonce then
    outcomes[i] = {'pending', held[1] or '', held[2]}
  else
    if not held[2] then
      redis.call('HSET', key, 'secret', secret, 'nonce', nonce)
      redis.call('EXPIRE', key, ARGV[1])
    end
    outcomes[i] = {'claimed', nonce, held[1] or secret}
  end
end
return outcomes
