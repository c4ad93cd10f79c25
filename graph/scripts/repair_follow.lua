#!lua
-- Restore a follow in one of its two lists, unless the list has a newer number or tombstone. The tombstone floor is
-- ignored: the caller has checked it.
-- KEYS: 1 following:{v} or followers:{a}   2 its tombstones   3 optional: a home cache to remove after a change
-- ARGV: 1 number of the follow   2 the other user
-- Returns 1, or 0 if there is a newer number.
local version = redis.call('ZSCORE', KEYS[1], ARGV[2]) or redis.call('ZSCORE', KEYS[2], ARGV[2]) or 0
if tonumber(ARGV[1]) <= tonumber(version) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZREM', KEYS[2], ARGV[2])
if KEYS[3] then redis.call('UNLINK', KEYS[3]) end
return 1
