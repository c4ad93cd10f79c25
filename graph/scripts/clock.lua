#!lua flags=no-writes
-- Return the lowest number that an event can have at the current time, by the store's clock.
-- KEYS: 1 {log}   ARGV: 1 milliseconds between 1970 and the epoch of numbers
-- Returns the number as a string.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) - tonumber(ARGV[1])
return string.format('%.0f', now * 4096)
