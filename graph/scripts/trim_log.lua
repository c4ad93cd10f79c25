#!lua flags=allow-oom
-- Remove old events from the log, and store the highest number removed. Only events that are projected and in the
-- archive are removed. The store's clock decides their age.
-- KEYS: 1 {log}   2 {log}:watermark   3 {log}:archived   4 {log}:trimmed
-- ARGV: 1 age in milliseconds from which events are removed   2 milliseconds between 1970 and the epoch of numbers
--       3 maximum number of entries to remove at once   4 number of entries beyond which the oldest are removed earlier
--       5 age in milliseconds from which they are then removed
--       6 number of entries beyond which the oldest are removed whatever their age
-- Returns the number of removed entries.
local epoch = tonumber(ARGV[2])
local id = function(n) return string.format('%.0f-%.0f', math.floor(n / 4096) + epoch, n % 4096) end
local number = function(entry)
  local ms, sequence = string.match(entry[1], '(%d+)-(%d+)')
  return math.max(0, (tonumber(ms) - epoch) * 4096 + tonumber(sequence))
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) - epoch
local older = function(age) return math.max(0, now - tonumber(age)) * 4096 end
local length = redis.call('XLEN', KEYS[1])
local beyond = function(most)
  local excess = math.min(length - tonumber(most), tonumber(ARGV[3]))
  if excess <= 0 then return 0 end
  local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', excess)
  return number(oldest[#oldest])
end
local upto = math.max(older(ARGV[1]), math.min(beyond(ARGV[4]), older(ARGV[5])), beyond(ARGV[6]))
for i = 2, 3 do upto = math.min(upto, tonumber(redis.call('GET', KEYS[i]) or 0)) end
local oldest = redis.call('XRANGE', KEYS[1], '-', id(upto), 'COUNT', ARGV[3])
if #oldest == 0 then return 0 end
local newest = oldest[#oldest]
if number(newest) > tonumber(redis.call('GET', KEYS[4]) or 0) then
  redis.call('SET', KEYS[4], string.format('%.0f', number(newest)))
end
return redis.call('XTRIM', KEYS[1], 'MINID', id(number(newest) + 1))
