#!lua flags=allow-oom
-- Extend a session that is live. A later expiry is kept: the clocks of processes differ.
-- KEYS: 1 session:{u}   2 session:{u}:details
-- ARGV: 1 session   2 its new expiry   3 now, both in seconds since 1970
-- Returns 1, or 0 if the session has ended or expired.
local ends = redis.call('HGET', KEYS[1], ARGV[1])
if not ends or tonumber(ends) <= tonumber(ARGV[3]) then return 0 end
if tonumber(ends) >= tonumber(ARGV[2]) then return 1 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
for _, key in ipairs(KEYS) do redis.call('EXPIREAT', key, ARGV[2], 'GT') end
return 1
