#!lua flags=allow-oom
-- Remove the records of archived posts, but neither tombstones nor counts.
-- KEYS: post:{p} for each   ARGV: 1 'unlisted' to remove only those of replies that are not listed, else ''
-- Returns the number of removed records.
local freed, is_count = 0, {replies = true, reposts = true, quotes = true, likes = true}
for _, key in ipairs(KEYS) do
  local kept, fields = redis.call('HEXISTS', key, 'deleted') == 1, {}
  if ARGV[1] == 'unlisted' then
    kept = kept or not string.find(redis.call('HGET', key, 'details') or '', '"listed":false', 1, true)
  end
  if not kept then
    for _, field in ipairs(redis.call('HKEYS', key)) do
      if not is_count[field] then fields[#fields + 1] = field end
    end
    if #fields > 0 then
      redis.call('HDEL', key, unpack(fields))
      freed = freed + 1
    end
  end
end
return freed
