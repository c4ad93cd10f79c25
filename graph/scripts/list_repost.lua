#!lua flags=allow-oom
-- Add plain reposts to the lists under their originals, and store the lengths of the lists in the records of these posts.
-- A deleted original voids its reposts.
-- KEYS: for each repost reposts:{p}, its tombstones, the number of its archived posts, and post:{p}
-- ARGV: 1 the field of the length   then the reposts
-- Returns for each repost 'void', or 'listed', or 'unsure' if the store holds no record of the original.
local states = {}
for i = 1, #KEYS, 4 do
  local list, gone, record, place = KEYS[i], KEYS[i + 1], KEYS[i + 3], (i + 3) / 4
  local repost = ARGV[1 + place]
  local original = redis.call('HMGET', record, 'deleted', 'id')
  if original[1] then
    states[place] = 'void'
  else
    local archived = redis.call('ZSCORE', list, 'f')
    local floor = math.max(tonumber(archived or 0), tonumber(redis.call('ZSCORE', gone, 'f') or 0))
    if tonumber(repost) > floor and not redis.call('ZSCORE', gone, repost) then
      redis.call('ZADD', list, 'NX', repost, repost)
    end
    local length = redis.call('ZCARD', list) - (archived and 1 or 0) + (redis.call('GET', KEYS[i + 2]) or 0)
    if length > 0 then redis.call('HSET', record, ARGV[1], length) end
    states[place] = original[2] and 'listed' or 'unsure'
  end
end
return states
