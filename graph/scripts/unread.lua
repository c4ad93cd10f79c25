#!lua flags=no-writes
-- Return the newest groups of a list of notifications that are not read.
-- KEYS: 1 notifications:{u}   2 notifications:{u}:read
-- ARGV: 1 maximum number of groups   2 the upper bound of their numbers, as in ZRANGE
-- Returns a flat array of groups and their numbers, newest first.
local read_to = redis.call('GET', KEYS[2]) or '0'
return redis.call('ZRANGE', KEYS[1], ARGV[2], '(' .. read_to, 'BYSCORE', 'REV', 'LIMIT', 0, ARGV[1], 'WITHSCORES')
