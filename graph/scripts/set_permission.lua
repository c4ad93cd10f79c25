#!lua flags=allow-oom
-- Grant or revoke permissions. A permission changes if the number of the event is above that of its last change. The
-- permissions of a deleted user do not change.
-- KEYS: for each change user:{u}
-- ARGV: for each change the permission's field, and the number of the event, negative for a revocation
-- Returns the number of fields that were set.
local set = 0
for i, key in ipairs(KEYS) do
  local field, number = ARGV[2 * i - 1], ARGV[2 * i]
  local before, deleted = unpack(redis.call('HMGET', key, field, 'deleted'))
  if not deleted and (not before or math.abs(tonumber(number)) > math.abs(tonumber(before))) then
    redis.call('HSET', key, field, number)
    set = set + 1
  end
end
return set
