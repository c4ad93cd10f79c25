#!lua flags=allow-oom
-- Set a user's plain repost of an original in the register and in the timeline, unless a later event has decided. A
-- repost that it replaces leaves the timeline. What the register holds is in the timeline, or among its archived posts.
-- KEYS: 1 reposted:{u}   2 its tombstones   3 posts:{u}   4 its tombstones   5 cold:{u}   6 delivery:{u}
--       7 followers:{u}
-- ARGV: 1 original   2 repost
-- Returns {'added' | 'archived', delivery mode or '', number of followers, reposts that this one has replaced …}, or
--       {'void', number of the later event, '', reposts that this one has replaced …}.
local original, repost = ARGV[1], ARGV[2]
local held = redis.call('ZSCORE', KEYS[1], original)
local last = version(floor_of(KEYS[2]), original, KEYS[1], KEYS[2])
local archived = redis.call('ZSCORE', KEYS[3], 'f')
local reply
if tonumber(repost) < last then
  reply = {'void', string.format('%.0f', last), ''}
else
  if tonumber(repost) > last then
    if held then
      local old = string.format('%.0f', tonumber(held))
      if redis.call('ZREM', KEYS[3], old) == 0 and tonumber(old) <= tonumber(archived or 0) then
        redis.call('DECR', KEYS[5])
      end
      redis.call('ZADD', KEYS[4], 'LT', repost, old)
    end
    place(KEYS[1], repost, original, KEYS[2])
  end
  if archived and tonumber(repost) <= tonumber(archived) and not redis.call('ZSCORE', KEYS[3], repost) then
    reply = {'archived'}
  else
    if archived then
      redis.call('ZADD', KEYS[3], 'NX', repost, repost)
    else
      redis.call('ZADD', KEYS[3], 0, 'f', repost, repost)
    end
    reply = {'added'}
  end
  reply[2], reply[3] = redis.call('GET', KEYS[6]) or '', redis.call('ZCARD', KEYS[7])
end
for _, old in ipairs(redis.call('ZRANGE', KEYS[4], repost, repost, 'BYSCORE')) do
  if old ~= 'f' then reply[#reply + 1] = old end
end
return reply
