#!lua
-- Write the fields that a profile lacks; what is there stays.
-- KEYS: 1 user:{u}   ARGV: 1 number of the UserCreated event   then pairs of field and value
-- Returns how many fields were written.
local written = 0
for i = 2, #ARGV, 2 do
  if redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1]) == 1 then
    redis.call('HSETNX', KEYS[1], ARGV[i] .. ':at', ARGV[1])
    written = written + 1
  end
end
return written
