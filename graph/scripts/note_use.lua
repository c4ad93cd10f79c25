#!lua flags=allow-oom
-- Note when a session was used, if it is live and no use was noted shortly before.
-- KEYS: 1 session:{u}   2 session:{u}:details   ARGV: 1 session   2 now, in seconds since 1970   3 seconds between notes
-- Returns 1 if the use was noted, else 0.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
local field = ARGV[1] .. ':used'
if tonumber(redis.call('HGET', KEYS[2], field) or 0) + tonumber(ARGV[3]) > tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[2], field, ARGV[2])
redis.call('EXPIREAT', KEYS[2], redis.call('EXPIRETIME', KEYS[1]), 'NX')
return 1
