#!lua
-- Mark an author in a home cache as merged at read, if there is a cache and the viewer follows the author.
-- KEYS: 1 home:{v}   2 following:{v}   ARGV: 1 author
if redis.call('EXISTS', KEYS[1]) == 0 or not redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], -1, 'a' .. ARGV[1])
return 1
