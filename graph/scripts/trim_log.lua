#!lua
-- Remove old events from the log up to the watermark at most, and store the highest number removed.
-- KEYS: 1 {log}   2 {log}:watermark   3 {log}:trimmed
-- ARGV: 1 highest number to remove   2 milliseconds between 1970 and the epoch of numbers
-- Returns the number of removed entries.
local epoch = tonumber(ARGV[2])
local upto = math.min(tonumber(ARGV[1]), tonumber(redis.call('GET', KEYS[2]) or 0))
local id = function(n) return string.format('%.0f-%.0f', math.floor(n / 4096) + epoch, n % 4096) end
local newest = redis.call('XREVRANGE', KEYS[1], id(upto), '-', 'COUNT', 1)[1]
if not newest then return 0 end
local ms, sequence = string.match(newest[1], '(%d+)-(%d+)')
local removed = string.format('%.0f', math.max(0, (tonumber(ms) - epoch) * 4096 + tonumber(sequence)))
redis.call('SET', KEYS[3], removed)
return redis.call('XTRIM', KEYS[1], 'MINID', id(upto + 1))
