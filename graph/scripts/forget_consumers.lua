#!lua
-- Remove consumers that have not asked for anything for long and hold nothing: workers of the past.
-- KEYS: 1 {log}   ARGV: 1 consumer group   2 milliseconds of silence
-- Returns how many were removed.
local removed = 0
for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local fields = {}
  for i = 1, #consumer, 2 do fields[consumer[i]] = consumer[i + 1] end
  if fields['pending'] == 0 and fields['idle'] > tonumber(ARGV[2]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], fields['name'])
    removed = removed + 1
  end
end
return removed
