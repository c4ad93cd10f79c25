#!lua flags=allow-oom
-- Acknowledge projected events and finished fan-out tasks, and advance the watermark.
-- KEYS: 1 {log}   2 {log}:watermark   3 {log}:fanouts   4 {log}:fanouts:open   5 {log}:archived
--       6 {log}:fanouts:added
-- ARGV: 1 consumer group   2 milliseconds between 1970 and the numbers' epoch   3 number of events
--       then the entries of the events, then the entries of the tasks
-- Returns the watermark, and the number up to which every event is in the archive, as strings.
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
local watermark = 0
local pending = redis.call('XPENDING', KEYS[1], ARGV[1])
if pending[1] > 0 then
  watermark = number(pending[2]) - 1
else
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
    local fields = {}
    for i = 1, #group, 2 do fields[group[i]] = group[i + 1] end
    if fields['name'] == ARGV[1] then
      local delivered = fields['last-delivered-id']
      watermark = number(delivered)
      -- After a failover the log skips the numbers of lost events, up to its last id.
      if #redis.call('XRANGE', KEYS[1], '(' .. delivered, '+', 'COUNT', 1) == 0 then
        local info = redis.call('XINFO', 'STREAM', KEYS[1])
        for i = 1, #info, 2 do
          if info[i] == 'last-generated-id' then watermark = number(info[i + 1]) end
        end
      end
    end
  end
end
local open = redis.call('ZRANGE', KEYS[4], 0, 0, 'WITHSCORES')
if #open > 0 then watermark = math.min(watermark, tonumber(open[2]) - 1) end
watermark = math.max(watermark, tonumber(redis.call('GET', KEYS[2]) or 0))
local text = string.format('%.0f', watermark)
redis.call('SET', KEYS[2], text)
redis.call('ZREMRANGEBYSCORE', KEYS[6], '-inf', text)
return {text, redis.call('GET', KEYS[5]) or '0'}
