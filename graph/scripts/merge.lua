#!lua
-- Merge the hot timelines of authors: their newest or oldest posts in a window.
-- KEYS: for each author posts:{a}; if ARGV 5 says so, each followed by reach:{a}
-- ARGV: 1 low   2 high, both exclusive; 'inf' for no bound   3 how many   4 'newest' or 'oldest' first
--       5 'pushed' to leave out the authors who are large or growing, else ''
-- Returns {posts in order; place of an author and archive floor, for each author with archived posts between the
-- ends of what was found; places of the authors left out}. Places count from 0.
-- What is found so far narrows the window for the authors to come, so most of them answer with nothing.
local low, high, count = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local newest, pushed, bounded = ARGV[4] == 'newest', ARGV[5] == 'pushed', ARGV[2] ~= 'inf'
local from_top = function(a, b) return a > b end
local found, floors, left_out = {}, {}, {}
local edge = function(number) return number == math.huge and 'inf' or string.format('(%.0f', number) end
local bottom, top = edge(low), edge(high)
local narrow = function()
  if newest then table.sort(found, from_top) else table.sort(found) end
  for i = #found, count + 1, -1 do found[i] = nil end
  if #found == count then
    if newest then low = found[count] else high = found[count] end
    bottom, top = edge(low), edge(high)
  end
end
for i = 1, #KEYS, pushed and 2 or 1 do
  local place = pushed and (i - 1) / 2 or i - 1
  if pushed and redis.call('EXISTS', KEYS[i + 1]) == 1 then
    left_out[#left_out + 1] = place
  else
    local posts
    if newest then
      posts = redis.call('ZRANGE', KEYS[i], top, bottom, 'BYSCORE', 'REV', 'LIMIT', 0, count)
    else
      posts = redis.call('ZRANGE', KEYS[i], bottom, top, 'BYSCORE', 'LIMIT', 0, count + 1)
    end
    local ends = false
    for _, post in ipairs(posts) do
      if post == 'f' then ends = true else found[#found + 1] = tonumber(post) end
    end
    -- The floor shows among the newest posts where the hot ones end; below it, and from below, it has to be asked for.
    if ends or bounded or not newest then
      local floor = tonumber(redis.call('ZSCORE', KEYS[i], 'f') or 0)
      if floor > low then
        floors[#floors + 1] = place
        floors[#floors + 1] = floor
      end
    end
    if #found > 4 * count then narrow() end
  end
end
narrow()
return {found, floors, left_out}
