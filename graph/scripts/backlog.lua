#!lua flags=no-writes
-- Read how far projections and the archive are behind the log, and other figures for operators.
-- KEYS: 1 {log}   2 {log}:watermark   3 {log}:archived   4 {log}:archived:progress   5 {log}:fanouts:open
--       6 {log}:dead   7 {log}:alarm   8 {log}:binding   9 {log}:rebuild   10 {log}:dead:dropped   11 {log}:erasing
-- ARGV: 1 milliseconds between 1970 and the epoch of numbers
-- Returns {length of the log, number of events that are not archived, entry of the first event that is not projected,
--       entry of the first one that is not archived, open tasks, dead letters, alarm, binding, rebuild, archived events,
--       batches, milliseconds of the batches, posts removed from hot timelines, the number that the next event would have,
--       dropped dead letters, deleted users who are not erased}, with '' for what does not exist.
local epoch = tonumber(ARGV[1])
local first = function(mark)
  local n = tonumber(redis.call('GET', mark) or 0)
  local id = string.format('(%.0f-%.0f', math.floor(n / 4096) + epoch, n % 4096)
  local entry = redis.call('XRANGE', KEYS[1], id, '+', 'COUNT', 1)[1]
  return entry and entry[1] or ''
end
local length, added, upcoming = 0, 0, 0
if redis.call('EXISTS', KEYS[1]) == 1 then
  local info = redis.call('XINFO', 'STREAM', KEYS[1])
  for i = 1, #info, 2 do
    if info[i] == 'length' then length = info[i + 1] end
    if info[i] == 'entries-added' then added = info[i + 1] end
    if info[i] == 'last-generated-id' then
      local ms, sequence = string.match(info[i + 1], '(%d+)-(%d+)')
      upcoming = (tonumber(ms) - epoch) * 4096 + tonumber(sequence) + 1
    end
  end
end
local time = redis.call('TIME')
upcoming = math.max(upcoming, (tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) - epoch) * 4096)
local progress = redis.call('HMGET', KEYS[4], 'position', 'events', 'batches', 'milliseconds', 'trimmed')
local unprojected, unarchived, waiting = first(KEYS[2]), first(KEYS[3]), 0
if unarchived ~= '' then waiting = math.max(1, math.min(length, added - (progress[1] or 0))) end
return {
  length, waiting, unprojected, unarchived, redis.call('ZCARD', KEYS[5]), redis.call('XLEN', KEYS[6]),
  redis.call('GET', KEYS[7]) or '', redis.call('GET', KEYS[8]) or '', redis.call('GET', KEYS[9]) or '',
  progress[2] or '0', progress[3] or '0', progress[4] or '0', progress[5] or '0',
  string.format('%.0f', upcoming),
  redis.call('GET', KEYS[10]) or '0', redis.call('ZCARD', KEYS[11]),
}
