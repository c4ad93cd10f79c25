#!lua
-- Store a session and remove expired ones. Beyond the limit, remove those that expire first.
-- KEYS: 1 session:{u}   ARGV: 1 session   2 its expiry   3 now, both in seconds since 1970   4 limit of sessions
-- Returns 1.
local ends = redis.call('HGETALL', KEYS[1])
local live = {}
for i = 1, #ends, 2 do
  if tonumber(ends[i + 1]) <= tonumber(ARGV[3]) then
    redis.call('HDEL', KEYS[1], ends[i])
  elseif ends[i] ~= ARGV[1] then
    live[#live + 1] = {tonumber(ends[i + 1]), ends[i]}
  end
end
table.sort(live, function(a, b) return a[1] < b[1] end)
for i = 1, #live - tonumber(ARGV[4]) + 1 do redis.call('HDEL', KEYS[1], live[i][2]) end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIREAT', KEYS[1], ARGV[2], 'GT')
redis.call('EXPIREAT', KEYS[1], ARGV[2], 'NX')
return 1
