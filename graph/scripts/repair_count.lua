#!lua
-- Set the count of an author's archived posts, unless floor or count have changed since the rows were counted: every
-- move raises the floor, and every deletion of an archived post lowers the count.
-- KEYS: 1 posts:{a}   2 cold:{a}   ARGV: 1 the floor   2 the count as it was, '' if there was none   3 the new count
-- Returns 1, or 0 if something has changed.
if tonumber(redis.call('ZSCORE', KEYS[1], 'f') or 0) ~= tonumber(ARGV[1]) then return 0 end
if (redis.call('GET', KEYS[2]) or '') ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[2], ARGV[3])
return 1
