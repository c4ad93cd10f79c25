#!lua
-- Restore a timeline's archive floor if it is missing or below the posts that the archive has freed. The new floor is
-- just below the first hot post that is not freed; without such a post, the last post in the archive.
-- KEYS: 1 posts:{a}   ARGV: 1 number up to which posts are freed   2 number up to which posts are in the archive
-- Returns 1, or 0 if the floor is valid.
local floor = redis.call('ZSCORE', KEYS[1], 'f')
if floor and tonumber(floor) >= tonumber(ARGV[1]) then return 0 end
local first = redis.call('ZRANGE', KEYS[1], '(' .. ARGV[1], ARGV[2], 'BYSCORE', 'LIMIT', 0, 1)[1]
redis.call('ZADD', KEYS[1], first and string.format('%.0f', tonumber(first) - 1) or ARGV[2], 'f')
return 1
