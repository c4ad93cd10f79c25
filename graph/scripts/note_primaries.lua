#!lua flags=allow-oom
-- Note the replication ids of the primaries, each with the end of the log (in milliseconds). A new id in place of one
-- that is missing is a failover: let the workers read the log again from before the missing ids were last seen. An id
-- that was replaced stays known, with a negative time, so that a worker with an old view triggers no further recovery.
-- KEYS: 1 {log}   2 {log}:primaries   3 {log}:fanouts:added
-- ARGV: 1 consumer group   2 milliseconds between 1970 and the epoch of numbers   3 milliseconds to go back
--       4 milliseconds after which missing ids are forgotten   then the replication id of each primary
-- Returns 1 if the workers read events again, else 0.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local milliseconds = function(id) return tonumber(string.match(id, '%d+')) end
local info, last = redis.call('XINFO', 'STREAM', KEYS[1]), 0
for i = 1, #info, 2 do
  if info[i] == 'last-generated-id' then last = milliseconds(info[i + 1]) end
end
local known, rows = {}, redis.call('HGETALL', KEYS[2])
for i = 1, #rows, 2 do known[rows[i]] = tonumber(rows[i + 1]) end
local reported, new, again = {}, 0, 0
for i = 5, #ARGV do
  reported[ARGV[i]] = true
  if not known[ARGV[i]] then new = new + 1 end
end
local from, missing = last, {}
for id, at in pairs(known) do
  if not reported[id] and last - math.abs(at) > tonumber(ARGV[4]) then
    redis.call('HDEL', KEYS[2], id)
  elseif not reported[id] and at >= 0 then
    missing[#missing + 1] = id
    from = math.min(from, at)
  end
end
if new > 0 and #missing > 0 then
  from = math.max(0, from - tonumber(ARGV[3]))
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
    local fields = {}
    for i = 1, #group, 2 do fields[group[i]] = group[i + 1] end
    -- The group must not skip what it has not read yet.
    if fields['name'] == ARGV[1] and milliseconds(fields['last-delivered-id']) >= from then
      redis.call('XGROUP', 'SETID', KEYS[1], ARGV[1], string.format('%.0f-0', from))
      redis.call('ZREMRANGEBYSCORE', KEYS[3], string.format('%.0f', (from - tonumber(ARGV[2])) * 4096), '+inf')
      again = 1
    end
  end
  -- With fewer new ids than missing ones, it is unknown which ones were replaced.
  for _, id in ipairs(#missing <= new and missing or {}) do
    redis.call('HSET', KEYS[2], id, string.format('%.0f', -known[id]))
  end
end
for id in pairs(reported) do redis.call('HSET', KEYS[2], id, string.format('%.0f', last)) end
return again
