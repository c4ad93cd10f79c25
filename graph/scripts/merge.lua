#!lua
-- Merge the hot timelines of authors: their newest or oldest posts in a window.
-- KEYS: for each author posts:{a}; if ARGV 5 says so, each followed by delivery:{a}
-- ARGV: 1 low   2 high, both exclusive; 'inf' for no bound   3 how many   4 'newest' or 'oldest' first
--       5 'pushed' to leave out authors whose delivery mode is pull or promoting, else ''
-- Returns {posts in order; place of an author and archive floor, for each author with archived posts between the
-- ends of what was found; places of the authors left out}. Places count from 0.
-- A few posts of every author narrow the window first; then only those are read on who have more inside it. So the
-- work grows with the authors and the posts wanted, not with the posts there are.
local low, high, count = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local newest, pushed, bounded = ARGV[4] == 'newest', ARGV[5] == 'pushed', ARGV[2] ~= 'inf'
local found, floors, left_out, more = {}, {}, {}, {}
local from_top = function(a, b) return a > b end
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

-- Read posts of one author; tell where to read on if there may be more, and whether the hot ones ended.
local read = function(key, from, most)
  local posts
  if newest then
    posts = redis.call('ZRANGE', key, from, bottom, 'BYSCORE', 'REV', 'LIMIT', 0, most)
  else
    posts = redis.call('ZRANGE', key, from, top, 'BYSCORE', 'LIMIT', 0, most)
  end
  local last, ends
  for _, post in ipairs(posts) do
    if post == 'f' then
      ends = true
    else
      last = tonumber(post)
      found[#found + 1] = last
    end
  end
  if #found > 4 * count then narrow() end
  return #posts == most and last or nil, ends
end

local add_floor = function(key, place)
  local floor = tonumber(redis.call('ZSCORE', key, 'f') or 0)
  if floor > low then
    floors[#floors + 1] = place
    floors[#floors + 1] = floor
  end
end

local stride = pushed and 2 or 1
local first = math.max(2, math.ceil(4 * count * stride / #KEYS))
for i = 1, #KEYS, stride do
  local place = (i - 1) / stride
  if pushed and redis.call('EXISTS', KEYS[i + 1]) == 1 then
    left_out[#left_out + 1] = place
  else
    local last, ends = read(KEYS[i], newest and top or bottom, first)
    if last then more[#more + 1] = {i, place, last} end
    -- The floor shows among the newest posts where the hot ones end; below it, and from below, it has to be asked for.
    if ends or bounded or not newest then add_floor(KEYS[i], place) end
  end
end
narrow()
for _, author in ipairs(more) do
  local i, place, last = unpack(author)
  if newest and last > low or not newest and last < high then
    local _, ends = read(KEYS[i], edge(last), count + 1)
    if ends and newest and not bounded then add_floor(KEYS[i], place) end
  end
end
narrow()
return {found, floors, left_out}
