#!lua
-- Set a timeline's archive floor again where it is missing or below what the archive has freed: below the first hot
-- post that the archive has not freed, else where the archive stands.
-- KEYS: 1 posts:{a}   ARGV: 1 what the archive has freed   2 what it holds
-- Returns 1, or 0 if there is a floor that can be right.
local floor = redis.call('ZSCORE', KEYS[1], 'f')
if floor and tonumber(floor) >= tonumber(ARGV[1]) then return 0 end
local first = redis.call('ZRANGE', KEYS[1], '(' .. ARGV[1], ARGV[2], 'BYSCORE', 'LIMIT', 0, 1)[1]
redis.call('ZADD', KEYS[1], first and string.format('%.0f', tonumber(first) - 1) or ARGV[2], 'f')
return 1
