#!lua flags=allow-oom
-- Add plain reposts to the lists under their originals, and store the lengths of the lists in the records of these posts.
-- A deleted original voids its reposts.
-- KEYS: for each repost reposts:{p}, its tombstones, the number of its archived posts, and post:{p}
-- ARGV: 1 the field of the length   then the reposts
-- Returns for each repost 'void', or 'listed', or 'unsure' if the store holds no record of the original.
local states = {}
for i = 1, #KEYS, 4 do
  local list, gone, record, nth = KEYS[i], KEYS[i + 1], KEYS[i + 3], (i + 3) / 4
  local repost = ARGV[1 + nth]
  local original = redis.call('HMGET', record, 'deleted', 'id')
  if original[1] then
    states[nth] = 'void'
  else
    if tonumber(repost) > math.max(floor_of(list), floor_of(gone)) and not redis.call('ZSCORE', gone, repost) then
      redis.call('ZADD', list, 'NX', repost, repost)
    end
    write_count(record, ARGV[1], length(list, KEYS[i + 2]))
    states[nth] = original[2] and 'listed' or 'unsure'
  end
end
return states
