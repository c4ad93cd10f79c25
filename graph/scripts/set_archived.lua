#!lua flags=allow-oom
-- Set the number up to which the archive holds the log, if no failover has changed the log in the meantime.
-- KEYS: 1 {log}   2 {log}:archived   3 {log}:archived:progress   4 {log}:trimmed
-- ARGV: 1 the number as it was read   2 the new number, the last one archived   3 its stream entry; '' to lower the
--       number, which is always allowed   4 number of events since the former number   5 milliseconds that they took
--       6 number of posts removed from hot timelines since the last call   7 the number up to which streams report a gap
--       then the fields and values of the entry
-- Returns 1, or 0 if the number has changed, the log does not hold this entry, or streams do not report the gap.
if (redis.call('GET', KEYS[2]) or '0') ~= ARGV[1] then return 0 end
local log = {}
if redis.call('EXISTS', KEYS[1]) == 1 then
  local info = redis.call('XINFO', 'STREAM', KEYS[1])
  for i = 1, #info, 2 do log[info[i]] = info[i + 1] end
end
if ARGV[3] == '' then
  redis.call('SET', KEYS[2], ARGV[2])
  redis.call('HSET', KEYS[3], 'position', (log['entries-added'] or 0) - (log['length'] or 0))
  return 1
end
if tonumber(redis.call('GET', KEYS[4]) or 0) < tonumber(ARGV[7]) then return 0 end
local found = redis.call('XRANGE', KEYS[1], ARGV[3], ARGV[3])[1]
if not found or #found[2] ~= #ARGV - 7 then return 0 end
for i, word in ipairs(found[2]) do
  if word ~= ARGV[7 + i] then return 0 end
end
redis.call('SET', KEYS[2], ARGV[2])
if log['last-generated-id'] == ARGV[3] then
  redis.call('HSET', KEYS[3], 'position', log['entries-added'])
else
  redis.call('HINCRBY', KEYS[3], 'position', ARGV[4])
end
redis.call('HINCRBY', KEYS[3], 'events', ARGV[4])
redis.call('HINCRBY', KEYS[3], 'batches', 1)
redis.call('HINCRBY', KEYS[3], 'milliseconds', ARGV[5])
redis.call('HINCRBY', KEYS[3], 'trimmed', ARGV[6])
return 1
