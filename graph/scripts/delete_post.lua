#!lua flags=allow-oom
-- Replace posts by tombstones. Of several deletions of one post, the one with the lowest number counts.
-- KEYS: for each post post:{p}
-- ARGV: for each post the number of its PostDeleted event
-- Returns for each post the number that counts, as a string.
local numbers = {}
for i, key in ipairs(KEYS) do
  local before = redis.call('HGET', key, 'deleted')
  if before and tonumber(before) <= tonumber(ARGV[i]) then
    numbers[i] = before
  else
    local fields = redis.call('HKEYS', key)
    redis.call('HSET', key, 'deleted', ARGV[i])
    for _, field in ipairs(fields) do
      if field ~= 'deleted' then redis.call('HDEL', key, field) end
    end
    numbers[i] = ARGV[i]
  end
end
return numbers
