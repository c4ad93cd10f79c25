#!lua flags=allow-oom
-- Recompute the length of a list under a post, and store it in the record of the post.
-- KEYS: 1 the list   2 the number of its archived posts   3 post:{p}
-- ARGV: 1 the field of the length
-- Returns 1.
local deleted = redis.call('HEXISTS', KEYS[3], 'deleted') == 1
write_count(KEYS[3], ARGV[1], deleted and 0 or length(KEYS[1], KEYS[2]))
return 1
