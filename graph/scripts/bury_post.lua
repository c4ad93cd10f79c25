#!lua
-- Replace a post by its tombstone, for ever.
-- KEYS: 1 post:{p}   ARGV: 1 number of the PostDeleted fact
local before = tonumber(redis.call('HGET', KEYS[1], 'deleted') or 0)
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'deleted', tonumber(ARGV[1]) > before and ARGV[1] or string.format('%.0f', before))
return 1
