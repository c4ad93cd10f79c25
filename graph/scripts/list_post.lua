#!lua
-- Put a post into its author's timeline, and tell what fan-out needs to know.
-- KEYS: 1 posts:{a}   2 posts:{a}:gone   3 reach:{a}   4 followers:{a}
-- ARGV: 1 post
-- Returns {1, reach or '', number of followers}, or {0} if the post was deleted or has gone to the archive.
if redis.call('ZSCORE', KEYS[2], ARGV[1]) then return {0} end
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  local archived = tonumber(redis.call('ZSCORE', KEYS[1], 'f') or 0)
  local trimmed = tonumber(redis.call('ZSCORE', KEYS[2], 'f') or 0)
  if tonumber(ARGV[1]) <= archived or tonumber(ARGV[1]) <= trimmed then return {0} end
  redis.call('ZADD', KEYS[1], 'NX', 0, 'f')
  redis.call('ZADD', KEYS[1], ARGV[1], ARGV[1])
end
return {1, redis.call('GET', KEYS[3]) or '', redis.call('ZCARD', KEYS[4])}
