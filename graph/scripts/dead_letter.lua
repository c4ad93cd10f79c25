#!lua flags=allow-oom
-- Move an entry that cannot be projected to the dead letters: an event, or a task of a fan-out.
-- KEYS: 1 {log} or {log}:fanouts   2 {log}:dead   3 for a task {log}:fanouts:open
-- ARGV: 1 consumer group   2 entry   3 reason
-- Returns 1, or 0 if the entry is no longer pending: another worker has projected or moved it.
if redis.call('XACK', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
local entry = redis.call('XRANGE', KEYS[1], ARGV[2], ARGV[2])[1]
if entry then redis.call('XADD', KEYS[2], '*', 'entry', ARGV[2], 'reason', ARGV[3], unpack(entry[2])) end
if KEYS[3] then
  redis.call('XDEL', KEYS[1], ARGV[2])
  redis.call('ZREM', KEYS[3], ARGV[2])
end
return 1
