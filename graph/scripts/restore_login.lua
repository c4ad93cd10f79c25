#!lua flags=allow-oom
-- Give a login back to its user: a failover has lost it. A later sign-up with this login becomes void.
-- KEYS: 1 login:{x}
-- ARGV: 1 password hash, '' for an account without a password   2 nonce   3 user   4 number of the event that set the hash
-- Returns 1, or 0 if the login belongs to the user.
if redis.call('HGET', KEYS[1], 'user') == ARGV[3] then return 0 end
local others = {}
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if field ~= 'user' then others[#others + 1] = field end
end
redis.call('HSET', KEYS[1], 'user', ARGV[3])
if #others > 0 then redis.call('HDEL', KEYS[1], unpack(others)) end
redis.call('HSET', KEYS[1], 'secret', ARGV[1], 'nonce', ARGV[2])
if ARGV[4] ~= ARGV[3] then redis.call('HSET', KEYS[1], 'secret:at', ARGV[4]) end
return 1
