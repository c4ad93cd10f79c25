#!lua flags=allow-oom
-- Remove the records of archived posts, but not tombstones.
-- KEYS: post:{p} for each
-- Returns the number of removed records.
local freed = 0
for _, key in ipairs(KEYS) do
  if redis.call('HEXISTS', key, 'deleted') == 0 then freed = freed + redis.call('UNLINK', key) end
end
return freed
