#!lua
-- Read a slice of a home cache, and whom the viewer follows where the cache cannot answer alone.
-- KEYS: 1 home:{v}   2 following:{v}
-- ARGV: 1 low   2 high, both exclusive   3 how many   4 'newest' or 'oldest' first   5 seconds to live
--       6 renew the time to live below this
-- Returns {'none' | 'warming'} and the followed authors, or {'settled', floor, posts, marked authors} and, if posts
-- below the floor may be needed, the followed authors.
local following = function() return redis.call('ZRANGE', KEYS[2], 0, -1) end
if redis.call('EXISTS', KEYS[1]) == 0 then return {'none', '0', {}, {}, following()} end
if #redis.call('ZRANGE', KEYS[1], 'inf', 'inf', 'BYSCORE', 'LIMIT', 0, 1) > 0 then
  return {'warming', '0', {}, {}, following()}
end
if redis.call('TTL', KEYS[1]) < tonumber(ARGV[6]) then redis.call('EXPIRE', KEYS[1], ARGV[5]) end
local floor, low = tonumber(redis.call('ZSCORE', KEYS[1], 'f')), tonumber(ARGV[1])
local bottom = string.format('(%.0f', math.max(floor, low))
local posts, rest
if ARGV[4] == 'newest' then
  posts = redis.call('ZRANGE', KEYS[1], '(' .. ARGV[2], bottom, 'BYSCORE', 'REV', 'LIMIT', 0, ARGV[3])
  rest = #posts < tonumber(ARGV[3]) and floor > low and following() or nil
elseif low >= floor then
  posts = redis.call('ZRANGE', KEYS[1], bottom, '(' .. ARGV[2], 'BYSCORE', 'LIMIT', 0, ARGV[3])
else
  return {'settled', string.format('%.0f', floor), {}, {}, following()}
end
local marks = redis.call('ZRANGE', KEYS[1], -1, -1, 'BYSCORE')
return {'settled', string.format('%.0f', floor), posts, marks, rest}
