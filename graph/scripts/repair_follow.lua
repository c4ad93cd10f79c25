#!lua
-- Put a follow back into one of its two lists, unless it is there with a newer number, or a newer number undid it. The
-- floor of the tombstones says nothing against it: whoever calls has weighed that.
-- KEYS: 1 following:{v} or followers:{a}   2 its tombstones   3 optional: a home cache to forget if anything changed
-- ARGV: 1 number of the follow   2 the other person
-- Returns 1, or 0 if there is something newer.
local version = redis.call('ZSCORE', KEYS[1], ARGV[2]) or redis.call('ZSCORE', KEYS[2], ARGV[2]) or 0
if tonumber(ARGV[1]) <= tonumber(version) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZREM', KEYS[2], ARGV[2])
if KEYS[3] then redis.call('UNLINK', KEYS[3]) end
return 1
