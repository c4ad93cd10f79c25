#!lua flags=allow-oom
-- Take back a user's plain repost of an original: remove it from the register, and from the timeline or the count of
-- archived posts, and write tombstones. Old tombstones are then replaced by the tombstone floors.
-- KEYS: 1 reposted:{u}   2 its tombstones   3 posts:{u}   4 its tombstones   5 cold:{u}
-- ARGV: 1 highest number of a tombstone that may be trimmed   2 original   3 number of the event   4 the repost
-- Returns the reposts that this event has ended.
local original, number, repost = ARGV[2], ARGV[3], ARGV[4]
local held = redis.call('ZSCORE', KEYS[1], original)
if tonumber(number) > version(floor_of(KEYS[2]), original, KEYS[1], KEYS[2]) then
  if held then
    local old = string.format('%.0f', tonumber(held))
    if redis.call('ZREM', KEYS[3], old) == 0 and tonumber(old) <= floor_of(KEYS[3]) then redis.call('DECR', KEYS[5]) end
    redis.call('ZADD', KEYS[4], 'LT', number, old)
  end
  place(KEYS[2], number, original, KEYS[1])
end
if tonumber(number) > floor_of(KEYS[4]) then redis.call('ZADD', KEYS[4], 'LT', number, repost) end
local ended = {repost}
for _, old in ipairs(redis.call('ZRANGE', KEYS[4], number, number, 'BYSCORE')) do
  if old ~= 'f' and old ~= repost then ended[#ended + 1] = old end
end
trim(KEYS[2], floor_of(KEYS[2]), ARGV[1])
trim(KEYS[4], floor_of(KEYS[4]), ARGV[1])
return ended
