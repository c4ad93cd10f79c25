#!lua
-- Replace posts by their tombstones, for ever. Of several deletions of one post the lowest number counts.
-- KEYS: post:{p} of each   ARGV: the number of each one's PostDeleted event
-- Returns for each the number that counts, as a string.
local counts = {}
for i, key in ipairs(KEYS) do
  local before = redis.call('HGET', key, 'deleted')
  if before and tonumber(before) <= tonumber(ARGV[i]) then
    counts[i] = before
  else
    redis.call('DEL', key)
    redis.call('HSET', key, 'deleted', ARGV[i])
    counts[i] = ARGV[i]
  end
end
return counts
