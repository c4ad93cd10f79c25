#!lua
-- Move a fact that cannot be projected from the consumer group to the dead letters.
-- KEYS: 1 {log}   2 {log}:dead   ARGV: 1 consumer group   2 entry   3 reason
-- Returns 1, or 0 if the fact was not pending any more: projected or buried by somebody else.
if redis.call('XACK', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
local entry = redis.call('XRANGE', KEYS[1], ARGV[2], ARGV[2])[1]
if entry then redis.call('XADD', KEYS[2], '*', 'entry', ARGV[2], 'reason', ARGV[3], unpack(entry[2])) end
return 1
