#!lua flags=allow-oom
-- Add a step of a promotion, in place of the finished step before.
-- KEYS: 1 {log}:fanouts   2 {log}:fanouts:open
-- ARGV: 1 consumer group   2 entry of the finished step, '' for the first step   3 post   4 author   5 attempt
--       6 highest follow number that is left
-- Returns 1, or 0 if the finished step is no longer pending: another worker has put the next one in its place.
local entry = ARGV[2]
if entry ~= '' then
  if redis.call('XACK', KEYS[1], ARGV[1], entry) == 0 then return 0 end
end
local added = redis.call('XADD', KEYS[1], '*', 'post', ARGV[3], 'author', ARGV[4], 'attempt', ARGV[5], 'high', ARGV[6])
redis.call('ZADD', KEYS[2], ARGV[3], added)
if entry ~= '' then
  redis.call('XDEL', KEYS[1], entry)
  redis.call('ZREM', KEYS[2], entry)
end
return 1
