#!lua
-- Give up a lease, unless somebody else holds it.
-- KEYS: 1 the lease   ARGV: 1 holder
-- Returns 1 if the caller held the lease, else 0.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
