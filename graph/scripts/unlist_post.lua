#!lua flags=allow-oom
-- Remove deleted posts from a list, or from the count of its archived posts, and write tombstones. A repeated deletion
-- changes nothing. Old tombstones are then replaced by the tombstone floor.
-- KEYS: 1 the list   2 its tombstones   3 the number of its archived posts   4 for a list under a post: post:{p}
-- ARGV: 1 highest number of a tombstone that may be trimmed   2 the field of post:{p} with the length of the list, or ''
--       then pairs of post and number of the deletion
-- Returns the number of deletions that were new.
local floor, archived, new = floor_of(KEYS[2]), floor_of(KEYS[1]), 0
for i = 3, #ARGV, 2 do
  local post, number = ARGV[i], ARGV[i + 1]
  if tonumber(number) > floor then
    if not redis.call('ZSCORE', KEYS[2], post) then
      if redis.call('ZREM', KEYS[1], post) == 0 and tonumber(post) <= archived then redis.call('DECR', KEYS[3]) end
      new = new + 1
    end
    redis.call('ZADD', KEYS[2], 'LT', number, post)
  end
end
trim(KEYS[2], floor, ARGV[1])
if KEYS[4] and redis.call('HEXISTS', KEYS[4], 'deleted') == 0 then
  write_count(KEYS[4], ARGV[2], length(KEYS[1], KEYS[3]))
end
return new
