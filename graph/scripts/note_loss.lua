#!lua flags=allow-oom
-- Note that a failover has lost events up to a number, unless a higher one is noted.
-- KEYS: 1 {log}:lost   ARGV: 1 number
-- Returns 1.
if tonumber(ARGV[1]) > tonumber(redis.call('GET', KEYS[1]) or '0') then redis.call('SET', KEYS[1], ARGV[1]) end
return 1
