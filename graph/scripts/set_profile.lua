#!lua
-- Set fields of a profile, each only if the fact's number is above that of the field's last change.
-- KEYS: 1 user:{u}   ARGV: 1 number of the fact   then pairs of field and value
for i = 2, #ARGV, 2 do
  local at = redis.call('HGET', KEYS[1], ARGV[i] .. ':at')
  if not at or tonumber(ARGV[1]) > tonumber(at) then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1], ARGV[i] .. ':at', ARGV[1])
  end
end
return 1
