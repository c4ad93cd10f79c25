#!lua
-- Write posts' records, unless they were deleted.
-- KEYS: post:{p} of each   ARGV: for each how many words follow, then its fields and values
-- Returns for each 1 if the post stands, 0 if it is a tombstone.
local stands, at = {}, 1
for i, key in ipairs(KEYS) do
  local words = tonumber(ARGV[at])
  if redis.call('HEXISTS', key, 'deleted') == 1 then
    stands[i] = 0
  else
    redis.call('HSET', key, unpack(ARGV, at + 1, at + words))
    stands[i] = 1
  end
  at = at + words + 1
end
return stands
