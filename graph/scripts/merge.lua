#!lua flags=no-writes,allow-cross-slot-keys
-- Merge the hot timelines of authors: return their newest or oldest posts in a window.
-- KEYS: posts:{a} of one of the authors, which decides the node that gets the command; for an author who is read alone
--       because a slot is moving, all keys below
-- ARGV: 1 low   2 high, both exclusive; 'inf' for no bound   3 number of posts   4 'newest' or 'oldest' first
--       5 'push only' to skip authors whose delivery mode is pull or promoting; 'count archived' to ignore the floors of
--       authors without archived posts; else ''
--       then, for each author, posts:{a}; with 'push only', each followed by delivery:{a}; with 'count archived', by
--       cold:{a}. The keys may be in several slots of a cluster, but must be on one node.
-- Returns {posts in order; place and archive floor of each author with archived posts in the range of the posts found;
--       places of the skipped authors}. Places count from 0.
-- First, a few posts of every author narrow the window. Then only authors with more posts in it are read further, so
-- the cost grows with the number of authors and the number of posts wanted, not with the number of posts stored.
local low, high, count = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local newest, bounded = ARGV[4] == 'newest', ARGV[2] ~= 'inf'
local push_only, count_archived = ARGV[5] == 'push only', ARGV[5] == 'count archived'
local found, floors, skipped, unfinished = {}, {}, {}, {}
local descending = function(a, b) return a > b end
local exclusive = function(number) return number == math.huge and 'inf' or string.format('(%.0f', number) end
local bottom, top = exclusive(low), exclusive(high)

local narrow = function()
  if newest then table.sort(found, descending) else table.sort(found) end
  for i = #found, count + 1, -1 do found[i] = nil end
  if #found == count then
    if newest then low = found[count] else high = found[count] end
    bottom, top = exclusive(low), exclusive(high)
  end
end

-- Read posts of one author. Return the last post if there may be more, and whether the hot posts ended.
local read = function(key, from, limit)
  local posts
  if newest then
    posts = redis.call('ZRANGE', key, from, bottom, 'BYSCORE', 'REV', 'LIMIT', 0, limit)
  else
    posts = redis.call('ZRANGE', key, from, top, 'BYSCORE', 'LIMIT', 0, limit)
  end
  local last, ended
  for _, post in ipairs(posts) do
    if post == 'f' then
      ended = true
    else
      last = tonumber(post)
      found[#found + 1] = last
    end
  end
  if #found > 4 * count then narrow() end
  return #posts == limit and last or nil, ended
end

local add_floor = function(key, place, cold)
  local floor = tonumber(redis.call('ZSCORE', key, 'f') or 0)
  if floor > low and (not count_archived or tonumber(redis.call('GET', cold) or 0) > 0) then
    floors[#floors + 1] = place
    floors[#floors + 1] = floor
  end
end

local stride = ARGV[5] == '' and 1 or 2
local first = math.max(2, math.ceil(4 * count * stride / (#ARGV - 5)))
for i = 6, #ARGV, stride do
  local place = (i - 6) / stride
  if push_only and redis.call('EXISTS', ARGV[i + 1]) == 1 then
    skipped[#skipped + 1] = place
  else
    local last, ended = read(ARGV[i], newest and top or bottom, first)
    if last then unfinished[#unfinished + 1] = {i, place, last} end
    -- Reading the newest posts finds the floor where the hot posts end. In other windows it must be read separately.
    if ended or bounded or not newest then add_floor(ARGV[i], place, ARGV[i + 1]) end
  end
end
narrow()
for _, author in ipairs(unfinished) do
  local i, place, last = unpack(author)
  if newest and last > low or not newest and last < high then
    local _, ended = read(ARGV[i], exclusive(last), count + 1)
    if ended and newest and not bounded then add_floor(ARGV[i], place, ARGV[i + 1]) end
  end
end
narrow()
return {found, floors, skipped}
