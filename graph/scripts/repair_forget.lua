#!lua flags=allow-oom
-- Remove a home cache that still has the difference found: it holds a wrong member, or lacks one above its floor. A
-- cache without a floor or without a TTL is removed too, unless it is being rebuilt.
-- KEYS: 1 home:{v}   ARGV: 1 member   2 'holds' or 'lacks'
-- Returns 1, or 0 if the cache is right or absent.
local floor = redis.call('ZSCORE', KEYS[1], 'f')
local held = redis.call('ZSCORE', KEYS[1], ARGV[1])
local wrong
if not floor or redis.call('TTL', KEYS[1]) == -1 then
  wrong = #redis.call('ZRANGE', KEYS[1], 'inf', 'inf', 'BYSCORE', 'LIMIT', 0, 1) == 0
elseif ARGV[2] == 'holds' then
  wrong = held
else
  wrong = not held and (tonumber(ARGV[1]) or math.huge) > tonumber(floor)
end
return wrong and redis.call('UNLINK', KEYS[1]) or 0
