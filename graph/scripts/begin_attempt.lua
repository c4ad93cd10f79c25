#!lua
-- Count a log-in as failed before it is checked, unless its network has too many failures. A repetition counts once.
-- KEYS: 1 login:{x}   2 attempts:{x}:<network>   3 attempts:{x}   4 networks:{x}
-- ARGV: 1 attempt   2 network   3 lifetime of a failure in seconds   4 limit of failures from one network
--       5 number of failures to keep from all networks together
-- Returns {'refused', seconds until the network's oldest failure expires}, or {'begun', secret or '', user or '',
-- number of the last change of the secret or '0', earlier failures from this network, earlier failures from all
-- networks, 1 if the network has logged in before}.
local clock = redis.call('TIME')
local now = tonumber(clock[1]) + tonumber(clock[2]) / 1000000
local window = tonumber(ARGV[3])
for i = 2, 3 do redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now - window) end
for i = 2, 3 do redis.call('ZREM', KEYS[i], ARGV[1]) end
local own, all = redis.call('ZCARD', KEYS[2]), redis.call('ZCARD', KEYS[3])
if own >= tonumber(ARGV[4]) then
  local oldest = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  return {'refused', math.ceil(tonumber(oldest[2]) + window - now)}
end
for i = 2, 3 do
  redis.call('ZADD', KEYS[i], now, ARGV[1])
  redis.call('EXPIRE', KEYS[i], ARGV[3])
end
redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -1 - tonumber(ARGV[5]))
local held = redis.call('HMGET', KEYS[1], 'secret', 'user', 'secret:at')
local known = redis.call('ZSCORE', KEYS[4], ARGV[2]) and 1 or 0
return {'begun', held[1] or '', held[2] or '', held[3] or '0', own, all, known}
