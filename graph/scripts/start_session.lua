#!lua
-- Store a session and remove expired ones. Beyond the limit, remove those that expire first.
-- KEYS: 1 session:{u}   2 session:{u}:details   3 user:{u}
-- ARGV: 1 session   2 its expiry   3 now, both in seconds since 1970   4 limit of sessions   5 user agent, or ''
--       6 number of the change of the password that was checked, 0 for the first password, '' if none was checked
-- Returns 1; 0 if the password was changed after it was checked, or the user is deleted; -1 if the user is suspended.
if redis.call('HEXISTS', KEYS[3], 'deleted') == 1 then return 0 end
if tonumber(redis.call('HGET', KEYS[3], 'suspended') or 0) > 0 then return -1 end
local password = redis.call('HGET', KEYS[3], 'password') or '0'
if ARGV[6] ~= '' then
  if tonumber(ARGV[6]) < tonumber(password) then return 0 end
  password = ARGV[6]
end
local ends = redis.call('HGETALL', KEYS[1])
local live, kept = {}, {[ARGV[1]] = true}
for i = 1, #ends, 2 do
  if tonumber(ends[i + 1]) <= tonumber(ARGV[3]) then
    redis.call('HDEL', KEYS[1], ends[i])
  elseif ends[i] ~= ARGV[1] then
    live[#live + 1] = {tonumber(ends[i + 1]), ends[i]}
  end
end
table.sort(live, function(a, b) return a[1] < b[1] end)
local surplus = #live - tonumber(ARGV[4]) + 1
for i, session in ipairs(live) do
  if i <= surplus then redis.call('HDEL', KEYS[1], session[2]) else kept[session[2]] = true end
end
for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do
  if not kept[string.match(field, '^[^:]*')] then redis.call('HDEL', KEYS[2], field) end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('HSET', KEYS[2], ARGV[1] .. ':created', ARGV[3], ARGV[1] .. ':used', ARGV[3])
if ARGV[5] ~= '' then redis.call('HSET', KEYS[2], ARGV[1] .. ':agent', ARGV[5]) end
if password ~= '0' then redis.call('HSET', KEYS[2], ARGV[1] .. ':password', password) end
for _, key in ipairs({KEYS[1], KEYS[2]}) do
  redis.call('EXPIREAT', key, ARGV[2], 'GT')
  redis.call('EXPIREAT', key, ARGV[2], 'NX')
end
return 1
