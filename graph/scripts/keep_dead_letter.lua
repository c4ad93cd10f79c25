#!lua flags=allow-oom
-- Add a dead letter, even if the store is full.
-- KEYS: 1 {log}:dead   ARGV: its fields and values
-- Returns the id of the dead letter.
return redis.call('XADD', KEYS[1], '*', unpack(ARGV))
