#!lua flags=allow-oom
-- Set a number, unless a higher one is set.
-- KEYS: 1 the string   ARGV: 1 the number
-- Returns 1, or 0 if the number was not higher.
if tonumber(ARGV[1]) <= tonumber(redis.call('GET', KEYS[1]) or 0) then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1
