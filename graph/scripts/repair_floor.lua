#!lua flags=allow-oom
-- Set the archive floor of a timeline, unless it has changed since the comparison.
-- KEYS: 1 posts:{a}   ARGV: 1 floor found, '' if there was none   2 new floor
-- Returns 1, or 0 if the floor has changed.
if tonumber(redis.call('ZSCORE', KEYS[1], 'f')) ~= tonumber(ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[2], 'f')
return 1
