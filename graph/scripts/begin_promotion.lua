#!lua flags=allow-oom
-- Begin an author's promotion to pull, or take over an unfinished one, unless the mode has changed since it was read.
-- KEYS: 1 delivery:{a}
-- ARGV: 1 the mode as it was read, '' if absent   2 promoting:<post>:<token>
-- Returns 1, or 0 if the mode has changed.
local mode = redis.call('GET', KEYS[1]) or ''
if mode ~= ARGV[1] and mode ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
