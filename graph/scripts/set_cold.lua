#!lua flags=allow-oom
-- Set the number of an author's archived posts, unless the floor or the number has changed since the rows were counted.
-- Each cut raises the floor, and each deletion of an archived post lowers the number.
-- KEYS: 1 posts:{a}   2 cold:{a}   ARGV: 1 floor   2 former number, '' if there was none   3 new number
-- Returns 1, or 0 if the floor or the number has changed.
if tonumber(redis.call('ZSCORE', KEYS[1], 'f') or 0) ~= tonumber(ARGV[1]) then return 0 end
if (redis.call('GET', KEYS[2]) or '') ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[2], ARGV[3])
return 1
