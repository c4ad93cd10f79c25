#!lua
-- Replace a post's record, unless the post was deleted.
-- KEYS: 1 post:{p}   ARGV: pairs of field and value
-- Returns 1, or 0 if there is a tombstone.
if redis.call('HEXISTS', KEYS[1], 'deleted') == 1 then return 0 end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
