#!lua
-- Write posts' records, unless they were deleted.
-- KEYS: post:{p} of each   ARGV: 1 for each an array of fields and values by turns, strings, as JSON
-- Returns for each 1 if the post stands, 0 if it is a tombstone.
local stands, new = {}, redis.call('EXISTS', unpack(KEYS)) == 0
for i, record in ipairs(cjson.decode(ARGV[1])) do
  if not new and redis.call('HEXISTS', KEYS[i], 'deleted') == 1 then
    stands[i] = 0
  else
    redis.call('HSET', KEYS[i], unpack(record))
    stands[i] = 1
  end
end
return stands
