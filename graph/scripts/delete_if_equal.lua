#!lua flags=allow-oom
-- Delete a value, unless it has changed.
-- KEYS: 1 a string   ARGV: 1 its value
-- Returns 1 if it was deleted, else 0.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
