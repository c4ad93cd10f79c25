#!lua
-- Remove archived posts from the hot timeline, if it holds the same posts as the archive.
-- KEYS: 1 posts:{a}   2 cold:{a}
-- ARGV: 1 present archive floor   2 new floor   then the posts between them in the archive, oldest first
-- Returns 'trimmed', 'differs', or 'overtaken' if the floor has changed.
if tonumber(redis.call('ZSCORE', KEYS[1], 'f') or 0) ~= tonumber(ARGV[1]) then return 'overtaken' end
local hot = redis.call('ZRANGE', KEYS[1], '(' .. ARGV[1], ARGV[2], 'BYSCORE')
if #hot ~= #ARGV - 2 then return 'differs' end
for i, post in ipairs(hot) do
  if post ~= ARGV[i + 2] then return 'differs' end
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[1], ARGV[2], 'f')
redis.call('INCRBY', KEYS[2], #hot)
return 'trimmed'
