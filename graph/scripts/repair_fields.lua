#!lua flags=allow-oom
-- Set and remove fields of a hash, unless they have changed since the comparison. The hash then does not expire.
-- KEYS: 1 the hash
-- ARGV: for each field its name, the value found, and the new value: '=' and the text, or '' for none
-- Returns 1, or 0 if a field has changed.
for i = 1, #ARGV, 3 do
  local held = redis.call('HGET', KEYS[1], ARGV[i])
  if (held and '=' .. held or '') ~= ARGV[i + 1] then return 0 end
end
local removed = {}
for i = 1, #ARGV, 3 do
  if ARGV[i + 2] == '' then
    removed[#removed + 1] = ARGV[i]
  else
    redis.call('HSET', KEYS[1], ARGV[i], string.sub(ARGV[i + 2], 2))
  end
end
redis.call('PERSIST', KEYS[1])
if #removed > 0 then redis.call('HDEL', KEYS[1], unpack(removed)) end
return 1
