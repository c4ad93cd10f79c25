#!lua
-- Move the watermark, and the position of the workers in the log, past events that an import has projected.
-- KEYS: 1 {log}   2 {log}:watermark
-- ARGV: 1 consumer group   2 number of the last such event, as a string   3 its stream entry
-- Returns the watermark as a string.
if tonumber(ARGV[2]) <= tonumber(redis.call('GET', KEYS[2]) or 0) then return redis.call('GET', KEYS[2]) end
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local fields = {}
  for i = 1, #group, 2 do fields[group[i]] = group[i + 1] end
  if fields['name'] == ARGV[1] then redis.call('XGROUP', 'SETID', KEYS[1], ARGV[1], ARGV[3]) end
end
redis.call('SET', KEYS[2], ARGV[2])
return ARGV[2]
