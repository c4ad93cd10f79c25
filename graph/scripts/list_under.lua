#!lua flags=allow-oom
-- Add posts to lists under other posts, such as replies, and store the lengths of the lists in the records of these posts.
-- KEYS: for each post the list, its tombstones, the number of its archived posts, and post:{p} of its owner
-- ARGV: 1 the field of the length   then the posts
-- Returns the number of posts that were new.
local new = 0
for i = 1, #KEYS, 4 do
  local list, gone, record = KEYS[i], KEYS[i + 1], KEYS[i + 3]
  local post = ARGV[1 + (i + 3) / 4]
  if tonumber(post) > math.max(floor_of(list), floor_of(gone)) and not redis.call('ZSCORE', gone, post) then
    new = new + redis.call('ZADD', list, 'NX', post, post)
  end
  if redis.call('HEXISTS', record, 'deleted') == 0 then write_count(record, ARGV[1], length(list, KEYS[i + 2])) end
end
return new
