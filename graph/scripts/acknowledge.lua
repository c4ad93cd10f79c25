#!lua
-- Acknowledge projected events and fan-out tasks that are done, and advance the watermark.
-- KEYS: 1 {log}   2 {log}:watermark   3 {log}:fanouts   4 {log}:fanouts:open
-- ARGV: 1 consumer group   2 milliseconds between 1970 and the numbers' epoch   3 how many events
--       then the entries of those events, then those of tasks
-- Returns the watermark as a string.
local number = function(id)
  local ms, sequence = string.match(id, '(%d+)-(%d+)')
  return math.max(0, (tonumber(ms) - tonumber(ARGV[2])) * 4096 + tonumber(sequence))
end
local events = tonumber(ARGV[3])
if events > 0 then redis.call('XACK', KEYS[1], ARGV[1], unpack(ARGV, 4, 3 + events)) end
if #ARGV > 3 + events then
  redis.call('XACK', KEYS[3], ARGV[1], unpack(ARGV, 4 + events))
  redis.call('XDEL', KEYS[3], unpack(ARGV, 4 + events))
  redis.call('ZREM', KEYS[4], unpack(ARGV, 4 + events))
end
local drained = 0
local pending = redis.call('XPENDING', KEYS[1], ARGV[1])
if pending[1] > 0 then
  drained = number(pending[2]) - 1
else
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
    local fields = {}
    for i = 1, #group, 2 do fields[group[i]] = group[i + 1] end
    if fields['name'] == ARGV[1] then drained = number(fields['last-delivered-id']) end
  end
end
local open = redis.call('ZRANGE', KEYS[4], 0, 0, 'WITHSCORES')
if #open > 0 then drained = math.min(drained, tonumber(open[2]) - 1) end
drained = math.max(drained, tonumber(redis.call('GET', KEYS[2]) or 0))
local mark = string.format('%.0f', drained)
redis.call('SET', KEYS[2], mark)
return mark
