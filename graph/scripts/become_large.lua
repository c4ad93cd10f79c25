#!lua
-- Finish growing: every cache is marked, so fan-out may leave this author out from now on.
-- KEYS: 1 reach:{a}   ARGV: 1 the value that the growing began with
-- Returns the reach now, or ''.
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], 'large') end
return redis.call('GET', KEYS[1]) or ''
