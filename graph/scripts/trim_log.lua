#!lua
-- Remove old events from the log, and store the highest number removed. Only events that are projected and in the
-- archive are removed.
-- KEYS: 1 {log}   2 {log}:watermark   3 {log}:archived   4 {log}:trimmed
-- ARGV: 1 highest number to remove for its age   2 milliseconds between 1970 and the epoch of numbers
--       3 number of entries beyond which the oldest are removed whatever their age   4 how many to remove at once
-- Returns the number of removed entries.
local epoch = tonumber(ARGV[2])
local id = function(n) return string.format('%.0f-%.0f', math.floor(n / 4096) + epoch, n % 4096) end
local number = function(entry)
  local ms, sequence = string.match(entry[1], '(%d+)-(%d+)')
  return math.max(0, (tonumber(ms) - epoch) * 4096 + tonumber(sequence))
end
local upto = tonumber(ARGV[1])
local excess = math.min(redis.call('XLEN', KEYS[1]) - tonumber(ARGV[3]), tonumber(ARGV[4]))
if excess > 0 then
  local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', excess)
  upto = math.max(upto, number(oldest[#oldest]))
end
for i = 2, 3 do upto = math.min(upto, tonumber(redis.call('GET', KEYS[i]) or 0)) end
local oldest = redis.call('XRANGE', KEYS[1], '-', id(upto), 'COUNT', ARGV[4])
if #oldest == 0 then return 0 end
local newest = oldest[#oldest]
if number(newest) > tonumber(redis.call('GET', KEYS[4]) or 0) then
  redis.call('SET', KEYS[4], string.format('%.0f', number(newest)))
end
return redis.call('XTRIM', KEYS[1], 'MINID', id(number(newest) + 1))
