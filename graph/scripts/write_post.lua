#!lua flags=allow-oom
-- Write the records of posts that are not deleted.
-- KEYS: for each post post:{p}
-- ARGV: 1 JSON: for each post a flat array of fields and values, as strings
-- Returns for each post 1 if its record was written, 0 if it is a tombstone.
local written, new = {}, redis.call('EXISTS', unpack(KEYS)) == 0
for i, record in ipairs(cjson.decode(ARGV[1])) do
  if not new and redis.call('HEXISTS', KEYS[i], 'deleted') == 1 then
    written[i] = 0
  else
    redis.call('HSET', KEYS[i], unpack(record))
    written[i] = 1
  end
end
return written
