#!lua
-- Forget a home cache, if it still is as it was found: it holds a member that it should not, or lacks one that it
-- should hold. A post below the floor is not lacking. A cache without a floor, or without an end, is forgotten too.
-- KEYS: 1 home:{v}   ARGV: 1 the member   2 'holds' or 'lacks'
-- Returns 1, or 0 if there was nothing to forget.
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
