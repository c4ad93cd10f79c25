#!lua
-- Begin to rebuild a home cache, unless the cache exists, a rebuild is running, or the viewer is deleted.
-- KEYS: 1 home:{v}   2 following:{v}   3 muting:{v}   4 user:{v}
-- ARGV: 1 token   2 seconds until the unfinished cache expires
-- Returns the followed authors who are not muted, or false.
if redis.call('EXISTS', KEYS[1]) == 1 then return false end
if redis.call('HEXISTS', KEYS[4], 'deleted') == 1 then return false end
redis.call('ZADD', KEYS[1], 'inf', 'r' .. ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return redis.call('ZDIFF', 2, KEYS[2], KEYS[3])
