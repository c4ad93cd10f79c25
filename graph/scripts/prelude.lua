-- Functions that the scripts of this folder share. `Script` inserts them below the first line of each script that uses
-- one of them.
--
-- A versioned set is a sorted set of members and one of tombstones, both with the numbers of events as scores. Member
-- `f` is a floor: among the tombstones, it stands for those that were trimmed; among the members, for those that only
-- the archive holds (`graph/keys.py`).

-- The number of a member, 0 if the key does not have it.
local function score(key, member) return tonumber(redis.call('ZSCORE', key, member) or 0) end
local function floor_of(key) return score(key, 'f') end

-- The number of the last event about a member: its score in the first of up to three keys that has it, else the floor.
local function version(floor, member, first, second, third)
  local number = redis.call('ZSCORE', first, member) or second and redis.call('ZSCORE', second, member)
    or third and redis.call('ZSCORE', third, member) or floor
  return number and tonumber(number)
end

-- Move a member to the target key. It is added there before it is removed from the other keys.
local function place(target, number, member, ...)
  redis.call('ZADD', target, number, member)
  for i = 1, select('#', ...) do
    local key = select(i, ...)
    if key ~= target then redis.call('ZREM', key, member) end
  end
end

-- Replace the tombstones with numbers above the floor and up to `last` by a new floor, which is infinite meanwhile.
local function trim(gone, floor, last)
  local above = '(' .. string.format('%.0f', floor)
  local newest = redis.call('ZRANGE', gone, last, above, 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')[2]
  if not newest then return end
  redis.call('ZADD', gone, 'inf', 'f')
  redis.call('ZREMRANGEBYSCORE', gone, '-inf', last)
  redis.call('ZADD', gone, newest, 'f')
end

-- The number of members of a set, including those that only the archive holds.
local function length(set, cold)
  return redis.call('ZCARD', set) - (redis.call('ZSCORE', set, 'f') and 1 or 0) + (redis.call('GET', cold) or 0)
end

-- Write a count into the record of a post. A record without the field has a count of 0.
local function write_count(record, field, count)
  if count > 0 then redis.call('HSET', record, field, count) else redis.call('HDEL', record, field) end
end

