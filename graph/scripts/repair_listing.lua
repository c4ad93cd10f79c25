#!lua
-- Restore a post with a record in its author's timeline, at its place. The tombstone floor is ignored: a deletion
-- removes the record before it moves the floor.
-- KEYS: 1 posts:{a}   2 posts:{a}:gone   ARGV: 1 post
-- Returns {'listed'}, {'archived'} or {'deleted', number of the deletion}.
local deletion = redis.call('ZSCORE', KEYS[2], ARGV[1])
if deletion then return {'deleted', string.format('%.0f', deletion)} end
local listed = redis.call('ZSCORE', KEYS[1], ARGV[1])
local floor = tonumber(redis.call('ZSCORE', KEYS[1], 'f') or 0)
if not listed and tonumber(ARGV[1]) <= floor then return {'archived'} end
redis.call('ZADD', KEYS[1], 'NX', 0, 'f')
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[1])
return {'listed'}
