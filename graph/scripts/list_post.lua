#!lua
-- Put posts into their authors' timelines, and tell what fan-out needs to know.
-- KEYS: for each post posts:{a}, posts:{a}:gone, reach:{a}, followers:{a}
-- ARGV: the posts
-- Returns for each {'listed', reach or '', number of followers, number of hot posts}, {'deleted'} or {'archived'}.
local answers = {}
for i, post in ipairs(ARGV) do
  local posts, gone, reach, followers = unpack(KEYS, 4 * i - 3, 4 * i)
  local answer
  if redis.call('ZSCORE', gone, post) then
    answer = {'deleted'}
  elseif not redis.call('ZSCORE', posts, post) then
    if tonumber(post) <= tonumber(redis.call('ZSCORE', posts, 'f') or 0) then
      answer = {'archived'}
    elseif tonumber(post) <= tonumber(redis.call('ZSCORE', gone, 'f') or 0) then
      answer = {'deleted'}
    else
      redis.call('ZADD', posts, 'NX', 0, 'f')
      redis.call('ZADD', posts, post, post)
    end
  end
  answers[i] = answer or
    {'listed', redis.call('GET', reach) or '', redis.call('ZCARD', followers), redis.call('ZCARD', posts) - 1}
end
return answers
