#!lua flags=allow-oom
-- Note suspensions in the hash of all suspended users, and give the hash a new version if it changes. Of the events of a
-- user, the one with the highest number counts.
-- KEYS: 1 {suspended}   2 {suspended}:version
-- ARGV: 1 the new version, a random text   then pairs of user and number, negative if it lifts the suspension
-- Returns the number of changes.
local changed = 0
for i = 2, #ARGV, 2 do
  local before = redis.call('HGET', KEYS[1], ARGV[i])
  if not before or math.abs(tonumber(ARGV[i + 1])) > math.abs(tonumber(before)) then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
    changed = changed + 1
  end
end
if changed > 0 then redis.call('SET', KEYS[2], ARGV[1]) end
return changed
