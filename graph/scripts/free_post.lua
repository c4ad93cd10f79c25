#!lua flags=allow-oom
-- Remove the records of archived posts, but neither tombstones nor counts.
-- KEYS: post:{p} for each   ARGV: 1 'unlisted' to remove only those of replies that are not listed, else ''
-- Returns the number of removed records.
local freed, names = 0, {'replies', 'reposts', 'likes'}
for _, key in ipairs(KEYS) do
  local kept, counts = redis.call('HEXISTS', key, 'deleted') == 1, {}
  if ARGV[1] == 'unlisted' then
    kept = kept or not string.find(redis.call('HGET', key, 'details') or '', '"listed":false', 1, true)
  end
  if not kept then
    for i, count in ipairs(redis.call('HMGET', key, unpack(names))) do
      if count then
        counts[#counts + 1] = names[i]
        counts[#counts + 1] = count
      end
    end
    if redis.call('HLEN', key) > #counts / 2 then
      redis.call('UNLINK', key)
      if #counts > 0 then redis.call('HSET', key, unpack(counts)) end
      freed = freed + 1
    end
  end
end
return freed
