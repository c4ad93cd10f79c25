#!lua flags=no-writes
-- Read which users a viewer blocks, is blocked by, and mutes: all of them if they are few, else some given ones.
-- KEYS: 1 blocking:{v}   2 blockers:{v}   3 muting:{v}
-- ARGV: 1 maximum size of a set that is read completely   then the users to look up if a set has more
-- Returns {1 if the sets are complete, else 0; blocked users; blockers; muted users}.
local reply = {1}
for _, key in ipairs(KEYS) do
  if redis.call('ZCARD', key) > tonumber(ARGV[1]) then reply[1] = 0 end
end
for i, key in ipairs(KEYS) do
  if reply[1] == 1 then
    reply[i + 1] = redis.call('ZRANGE', key, 0, -1)
  else
    local found = {}
    for j = 2, #ARGV do
      if redis.call('ZSCORE', key, ARGV[j]) then found[#found + 1] = ARGV[j] end
    end
    reply[i + 1] = found
  end
end
return reply
