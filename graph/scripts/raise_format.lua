#!lua flags=allow-oom
-- Give the store a higher format, and note that its keys have to be converted.
-- KEYS: 1 {log}:binding   2 {log}:converting
-- ARGV: 1 the binding as it was read   2 the binding with the new format   3 the former format
-- Returns 1, or 0 if the binding has changed.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], ARGV[3])
redis.call('SET', KEYS[1], ARGV[2])
return 1
