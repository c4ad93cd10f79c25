#!lua flags=allow-oom
-- Remove the failures of a network after a successful log-in, and store the network among those of the user.
-- KEYS: 1 attempts:{x}:<network>   2 attempts:{x}   3 networks:{x}
-- ARGV: 1 attempt   2 network   3 lifetime of a network in seconds   4 number of networks to keep
-- Returns 1.
local clock = redis.call('TIME')
local now = tonumber(clock[1]) + tonumber(clock[2]) / 1000000
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now - tonumber(ARGV[3]))
redis.call('ZADD', KEYS[3], now, ARGV[2])
redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -1 - tonumber(ARGV[4]))
redis.call('EXPIRE', KEYS[3], ARGV[3])
return 1
