#!lua flags=allow-oom
-- Take or renew a lease, unless another holder has it.
-- KEYS: 1 the lease   ARGV: 1 holder   2 duration in milliseconds
-- Returns 1 if the caller holds the lease, else 0.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
