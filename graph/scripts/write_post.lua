#!lua
-- Write a post's record unless the post was deleted.
-- KEYS: 1 post:{p}   ARGV: pairs of field and value
-- Returns 1 if the post stands, 0 if it is a tombstone.
if redis.call('HEXISTS', KEYS[1], 'deleted') == 1 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
