#!lua flags=allow-oom
-- Note the number of a password change, and end the sessions whose log-in was checked with an earlier password. Does
-- nothing if the user is deleted.
-- KEYS: 1 user:{u}   2 session:{u}   3 session:{u}:details   ARGV: 1 number of the PasswordChanged event
-- Returns the number of sessions that were ended.
if redis.call('HEXISTS', KEYS[1], 'deleted') == 1 then return 0 end
local number = tonumber(ARGV[1])
if tonumber(redis.call('HGET', KEYS[1], 'password') or 0) < number then
  redis.call('HSET', KEYS[1], 'password', ARGV[1])
end
local ended = 0
for _, session in ipairs(redis.call('HKEYS', KEYS[2])) do
  if tonumber(redis.call('HGET', KEYS[3], session .. ':password') or 0) < number then
    redis.call('HDEL', KEYS[2], session)
    for _, field in ipairs({':created', ':used', ':agent', ':password'}) do
      redis.call('HDEL', KEYS[3], session .. field)
    end
    ended = ended + 1
  end
end
return ended
