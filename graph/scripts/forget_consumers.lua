#!lua flags=allow-oom
-- Remove consumers of former workers: they are idle and have no pending entries.
-- KEYS: 1 {log}   ARGV: 1 consumer group   2 idle time in milliseconds
-- Returns the number of removed consumers.
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
