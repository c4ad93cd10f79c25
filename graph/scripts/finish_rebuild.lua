#!lua
-- Finish the rebuild of a home cache: add the merged posts to those that fan-out has inserted in the meantime.
-- KEYS: 1 home:{v}
-- ARGV: 1 token   2 floor: the cache is complete above it   3 seconds to live   4 size limit of a cache
--       5 number of posts   then the posts, then the authors to mark
-- Returns 1, or 0 if the token no longer exists: the rebuild was invalidated, and the next read begins another.
if not redis.call('ZSCORE', KEYS[1], 'r' .. ARGV[1]) then return 0 end
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, ARGV[2])
local posts = tonumber(ARGV[5])
for i = 6, 5 + posts do
  if tonumber(ARGV[i]) > tonumber(ARGV[2]) then redis.call('ZADD', KEYS[1], ARGV[i], ARGV[i]) end
end
for i = 6 + posts, #ARGV do redis.call('ZADD', KEYS[1], -1, 'a' .. ARGV[i]) end
local floor = ARGV[2]
local surplus = redis.call('ZCOUNT', KEYS[1], '(' .. floor, '(inf') - tonumber(ARGV[4])
if surplus > 0 then
  floor = redis.call('ZRANGE', KEYS[1], '(' .. floor, '(inf', 'BYSCORE', 'LIMIT', surplus - 1, 1)[1]
  redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, floor)
end
redis.call('ZADD', KEYS[1], floor, 'f')
redis.call('ZREM', KEYS[1], 'r' .. ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
