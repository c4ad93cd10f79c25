#!lua flags=allow-oom
-- Drop the oldest dead letters beyond a limit, and count them.
-- KEYS: 1 {log}:dead   2 {log}:dead:dropped
-- ARGV: 1 the limit
-- Returns the number of dropped dead letters.
local dropped = redis.call('XTRIM', KEYS[1], 'MAXLEN', ARGV[1])
if dropped > 0 then redis.call('INCRBY', KEYS[2], dropped) end
return dropped
