#!lua flags=allow-oom
-- Add groups to lists of notifications, or move them up: a group keeps the highest number of its events. Events up to
-- the floor of a list are ignored. A list beyond the limit loses its oldest groups; their highest number is its floor.
-- KEYS: notifications:{u} for each user
-- ARGV: 1 limit of groups in a list   2 JSON: for each user a flat array of numbers and groups, as strings
-- Returns the number of groups that were added or moved.
local limit, changed = tonumber(ARGV[1]), 0
for i, changes in ipairs(cjson.decode(ARGV[2])) do
  local floor = redis.call('ZSCORE', KEYS[i], 'f')
  for j = 1, #changes, 2 do
    if not floor or tonumber(changes[j]) > tonumber(floor) then
      changed = changed + redis.call('ZADD', KEYS[i], 'GT', 'CH', changes[j], changes[j + 1])
    end
  end
  local first = floor and 1 or 0
  local surplus = redis.call('ZCARD', KEYS[i]) - first - limit
  if surplus > 0 then
    local last = first + surplus - 1
    local dropped = redis.call('ZRANGE', KEYS[i], last, last, 'WITHSCORES')
    redis.call('ZREMRANGEBYRANK', KEYS[i], 0, last)
    redis.call('ZADD', KEYS[i], dropped[2], 'f')
  end
end
return changed
