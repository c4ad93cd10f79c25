#!lua
-- Replace posts by their tombstones, for ever. The first deletion to come stays the one that counts.
-- KEYS: post:{p} of each   ARGV: the number of each one's PostDeleted fact
-- Returns for each the number of the deletion that counts, as a string.
local counts = {}
for i, key in ipairs(KEYS) do
  counts[i] = redis.call('HGET', key, 'deleted')
  if not counts[i] then
    redis.call('DEL', key)
    redis.call('HSET', key, 'deleted', ARGV[i])
    counts[i] = ARGV[i]
  end
end
return counts
