#!lua flags=allow-oom
-- Remove the tombstones of deleted posts.
-- KEYS: post:{p} for each   ARGV: for each the number of the deletion
-- Returns the number of removed tombstones.
local removed = 0
for i, key in ipairs(KEYS) do
  if redis.call('HGET', key, 'deleted') == ARGV[i] then removed = removed + redis.call('DEL', key) end
end
return removed
