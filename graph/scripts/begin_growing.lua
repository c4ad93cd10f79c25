#!lua
-- Begin to grow, or take over a growing that was left behind, unless the reach has changed since it was read.
-- KEYS: 1 reach:{a}   ARGV: 1 the reach as it was read, '' if absent   2 growing:<post>:<token>
-- Returns 1, or 0 if the reach has changed.
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] and redis.call('GET', KEYS[1]) ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
