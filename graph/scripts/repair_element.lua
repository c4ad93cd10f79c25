#!lua flags=allow-oom
-- Set one element of a versioned set, unless it has changed since the comparison. The state of an element is the number
-- of a member, the negative number of a tombstone, or '' for neither.
-- KEYS: 1 the set   2 its tombstones   3 optional: a home cache to delete
-- ARGV: 1 element   2 state found   3 new state   4 archive floor found in a timeline, '' for other sets
-- Returns 1, or 0 if the element or the floor has changed.
local member, tombstone = redis.call('ZSCORE', KEYS[1], ARGV[1]), redis.call('ZSCORE', KEYS[2], ARGV[1])
local held = tonumber(member) or (tombstone and -tonumber(tombstone)) or nil
if held ~= tonumber(ARGV[2]) or tonumber(redis.call('ZSCORE', KEYS[1], 'f')) ~= tonumber(ARGV[4]) then return 0 end
local new = tonumber(ARGV[3]) or 0
if new > 0 then redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1]) end
if new < 0 then redis.call('ZADD', KEYS[2], string.sub(ARGV[3], 2), ARGV[1]) end
if new <= 0 then redis.call('ZREM', KEYS[1], ARGV[1]) end
if new >= 0 then redis.call('ZREM', KEYS[2], ARGV[1]) end
if KEYS[3] then redis.call('UNLINK', KEYS[3]) end
return 1
