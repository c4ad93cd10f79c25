#!lua flags=no-writes
-- Return the highest number that the log has assigned, even if retention has removed all events.
-- KEYS: 1 {log}   ARGV: 1 milliseconds between 1970 and the epoch of numbers
-- Returns the number as a string, '0' for a log that never had an event.
if redis.call('EXISTS', KEYS[1]) == 0 then return '0' end
local info = redis.call('XINFO', 'STREAM', KEYS[1])
for i = 1, #info, 2 do
  if info[i] == 'last-generated-id' then
    local ms, sequence = string.match(info[i + 1], '(%d+)-(%d+)')
    return string.format('%.0f', math.max(0, (tonumber(ms) - tonumber(ARGV[1])) * 4096 + tonumber(sequence)))
  end
end
