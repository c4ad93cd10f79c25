#!lua
-- Insert a post into a home cache. Never creates one: without a cache the viewer is hibernated, and reads merge.
-- KEYS: 1 home:{v}   2 following:{v}
-- ARGV: 1 author   2 post   3 'own' if the viewer is the author, else ''   4 most posts a cache may hold
-- Returns 1 if inserted, else 0.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if ARGV[3] ~= 'own' and not redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 0 end
local floor = redis.call('ZSCORE', KEYS[1], 'f')
if floor and tonumber(ARGV[2]) <= tonumber(floor) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[2])
if not floor then return 1 end
local above = '(' .. string.format('%.0f', tonumber(floor))
local surplus = redis.call('ZCOUNT', KEYS[1], above, '(inf') - tonumber(ARGV[4])
if surplus > 0 then
  local highest = redis.call('ZRANGE', KEYS[1], above, '(inf', 'BYSCORE', 'LIMIT', surplus - 1, 1)[1]
  redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, highest)
  redis.call('ZADD', KEYS[1], highest, 'f')
end
return 1
