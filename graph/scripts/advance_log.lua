#!lua
-- Move the log past events that an import has projected and that are older than the log's retention, as if they had
-- been appended, projected and trimmed.
-- KEYS: 1 {log}   2 {log}:watermark   3 {log}:trimmed
-- ARGV: 1 consumer group   2 number of the first event   3 number of the last event   4 number of events
--       5 milliseconds between 1970 and the numbers' epoch
-- Returns 'advanced', 'repeated' if the log was already at the last event, or 'out of step' if it has newer events.
--       'out of step' changes nothing.
local epoch = tonumber(ARGV[5])
local first, last_event = tonumber(ARGV[2]), tonumber(ARGV[3])
local entry = string.format('%.0f-%.0f', math.floor(last_event / 4096) + epoch, last_event % 4096)
local stream = {}
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM') end
local info = redis.call('XINFO', 'STREAM', KEYS[1])
for i = 1, #info, 2 do stream[info[i]] = info[i + 1] end
local ms, sequence = string.match(stream['last-generated-id'], '(%d+)-(%d+)')
local last = math.max(0, (tonumber(ms) - epoch) * 4096 + tonumber(sequence))
if last >= first and last ~= last_event then return 'out of step' end
local outcome = last == last_event and 'repeated' or 'advanced'
if last < last_event then
  redis.call('XSETID', KEYS[1], entry, 'ENTRIESADDED', string.format('%.0f', stream['entries-added'] + ARGV[4]))
end
for i = 2, 3 do
  if last_event > tonumber(redis.call('GET', KEYS[i]) or 0) then redis.call('SET', KEYS[i], ARGV[3]) end
end
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local fields = {}
  for i = 1, #group, 2 do fields[group[i]] = group[i + 1] end
  if fields['name'] == ARGV[1] then redis.call('XGROUP', 'SETID', KEYS[1], ARGV[1], entry) end
end
return outcome
