#!lua flags=allow-oom
-- Add posts to their authors' timelines, or to the lists of their authors' replies, and return what fan-out needs to know.
-- KEYS: for each post posts:{a}, posts:{a}:gone, delivery:{a}, followers:{a}
-- ARGV: the posts
-- Returns for each post {'added', delivery mode or '', number of followers}, {'deleted'} or {'archived'}.
local replies, tombstones, modes = {}, {}, {}
for i = 1, #KEYS, 4 do
  tombstones[#tombstones + 1], modes[#modes + 1] = KEYS[i + 1], KEYS[i + 2]
end
local no_tombstones = redis.call('EXISTS', unpack(tombstones)) == 0
modes = redis.call('MGET', unpack(modes))
for i, post in ipairs(ARGV) do
  local posts, gone, followers = KEYS[4 * i - 3], KEYS[4 * i - 2], KEYS[4 * i]
  local below = function(floor) return floor and tonumber(post) <= tonumber(floor) end
  local archived = redis.call('ZSCORE', posts, 'f')
  if not no_tombstones and redis.call('ZSCORE', gone, post) then
    replies[i] = {'deleted'}
  elseif below(archived) and not redis.call('ZSCORE', posts, post) then
    replies[i] = {'archived'}
  elseif not no_tombstones and below(redis.call('ZSCORE', gone, 'f')) and not redis.call('ZSCORE', posts, post) then
    replies[i] = {'deleted'}
  else
    if archived then redis.call('ZADD', posts, 'NX', post, post) else redis.call('ZADD', posts, 0, 'f', post, post) end
    replies[i] = {'added', modes[i] or '', redis.call('ZCARD', followers)}
  end
end
return replies
