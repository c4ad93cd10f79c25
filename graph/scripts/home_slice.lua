#!lua flags=no-writes
-- Read a window of a home cache, and the followed authors if the cache does not hold the whole window.
-- KEYS: 1 home:{v}   2 following:{v}   3 muting:{v}
-- ARGV: 1 low   2 high, both exclusive   3 number of posts   4 'newest' or 'oldest' first
-- Returns {state, floor, posts, marked authors, followed authors}; the state is 'absent', 'rebuilding' or 'ready'.
--       Muted authors are left out of the followed ones, which are missing if the cache holds the whole window.
local following = function()
  if redis.call('EXISTS', KEYS[3]) == 0 then return redis.call('ZRANGE', KEYS[2], 0, -1) end
  return redis.call('ZDIFF', 2, KEYS[2], KEYS[3])
end
local floor, low = tonumber(redis.call('ZSCORE', KEYS[1], 'f') or nil), tonumber(ARGV[1])
if not floor then
  return {redis.call('EXISTS', KEYS[1]) == 0 and 'absent' or 'rebuilding', '0', {}, {}, following()}
end
local bottom = string.format('(%.0f', math.max(floor, low))
local posts, rest
if ARGV[4] == 'newest' then
  posts = redis.call('ZRANGE', KEYS[1], '(' .. ARGV[2], bottom, 'BYSCORE', 'REV', 'LIMIT', 0, ARGV[3])
  rest = #posts < tonumber(ARGV[3]) and floor > low and following() or nil
elseif low >= floor then
  posts = redis.call('ZRANGE', KEYS[1], bottom, '(' .. ARGV[2], 'BYSCORE', 'LIMIT', 0, ARGV[3])
else
  return {'ready', string.format('%.0f', floor), {}, {}, following()}
end
local marks = redis.call('ZRANGE', KEYS[1], -1, -1, 'BYSCORE')
return {'ready', string.format('%.0f', floor), posts, marks, rest}
