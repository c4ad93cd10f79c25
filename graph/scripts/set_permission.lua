#!lua
-- Grant or revoke permissions, each only if the event's number is above that of the permission's last change.
-- KEYS: user:{u} of each   ARGV: for each the permission's field, and the event's number, negative if it revokes
-- Returns how many fields were set.
local set = 0
for i, key in ipairs(KEYS) do
  local field, number = ARGV[2 * i - 1], ARGV[2 * i]
  local before = redis.call('HGET', key, field)
  if not before or math.abs(tonumber(number)) > math.abs(tonumber(before)) then
    redis.call('HSET', key, field, number)
    set = set + 1
  end
end
return set
