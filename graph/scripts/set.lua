#!lua flags=allow-oom
-- Set a string, even if the store is full. Only for short values.
-- KEYS: 1 the string   ARGV: 1 value   2 seconds to live, 0 for no limit
-- Returns 1.
if ARGV[2] == '0' then redis.call('SET', KEYS[1], ARGV[1]) else redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2]) end
return 1
