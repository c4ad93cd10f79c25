#!lua
-- Free the records of archived posts; tombstones stay.
-- KEYS: post:{p} of each
-- Returns how many were freed.
local freed = 0
for _, key in ipairs(KEYS) do
  if redis.call('HEXISTS', key, 'deleted') == 0 then freed = freed + redis.call('UNLINK', key) end
end
return freed
