#!lua flags=allow-oom
-- Create the consumer groups of the log, from the watermark on, and of the fan-out tasks, unless they exist.
-- KEYS: 1 {log}   2 {log}:watermark   3 {log}:fanouts
-- ARGV: 1 consumer group   2 milliseconds between 1970 and the epoch of numbers
-- Returns 1.
local create = function(stream, start)
  if redis.call('EXISTS', stream) == 1 then
    for _, group in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
      for i = 1, #group, 2 do
        if group[i] == 'name' and group[i + 1] == ARGV[1] then return end
      end
    end
  end
  redis.call('XGROUP', 'CREATE', stream, ARGV[1], start, 'MKSTREAM')
end
local watermark = tonumber(redis.call('GET', KEYS[2]) or 0)
create(KEYS[1], string.format('%.0f-%.0f', math.floor(watermark / 4096) + tonumber(ARGV[2]), watermark % 4096))
create(KEYS[3], '0')
return 1
