#!lua flags=allow-oom
-- Record that a failover has lost events that the archive holds: streams that have not passed them report a gap, and
-- the next events get numbers above all archived ones.
-- KEYS: 1 {log}   2 {log}:trimmed
-- ARGV: 1 highest lost number   2 the archive's last number   3 its stream entry   4 milliseconds between 1970 and the
--       epoch of numbers
-- Returns 1.
if tonumber(ARGV[1]) > tonumber(redis.call('GET', KEYS[2]) or 0) then redis.call('SET', KEYS[2], ARGV[1]) end
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('XADD', KEYS[1], ARGV[3], 'kind', '')
  redis.call('XDEL', KEYS[1], ARGV[3])
  return 1
end
local info = redis.call('XINFO', 'STREAM', KEYS[1])
for i = 1, #info, 2 do
  if info[i] == 'last-generated-id' then
    local ms, sequence = string.match(info[i + 1], '(%d+)-(%d+)')
    local last = math.max(0, (tonumber(ms) - tonumber(ARGV[4])) * 4096 + tonumber(sequence))
    if last < tonumber(ARGV[2]) then redis.call('XSETID', KEYS[1], ARGV[3]) end
  end
end
return 1
