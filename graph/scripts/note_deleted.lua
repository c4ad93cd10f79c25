#!lua flags=allow-oom
-- Note that users are deleted or erased. Of the events of a user, the one with the highest number counts.
-- KEYS: 1 {log}:deleted   2 {log}:erasing
-- ARGV: pairs of user and number of the UserDeleted event, or negative number of the UserErased event
-- Returns the number of changes.
local changed = 0
for i = 1, #ARGV, 2 do
  local user, number = ARGV[i], tonumber(ARGV[i + 1])
  local before = tonumber(redis.call('HGET', KEYS[1], user) or 0)
  if math.abs(number) >= math.abs(before) then
    redis.call('HSET', KEYS[1], user, ARGV[i + 1])
    if number > 0 then redis.call('ZADD', KEYS[2], ARGV[i + 1], user) else redis.call('ZREM', KEYS[2], user) end
    changed = changed + 1
  end
end
return changed
