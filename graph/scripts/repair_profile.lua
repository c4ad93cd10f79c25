#!lua
-- Write the missing fields of a profile. Existing fields are kept.
-- KEYS: 1 user:{u}   ARGV: 1 number of the UserCreated event   then pairs of field and value
-- Returns the number of fields written.
local written = 0
for i = 2, #ARGV, 2 do
  if redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1]) == 1 then
    redis.call('HSETNX', KEYS[1], ARGV[i] .. ':at', ARGV[1])
    written = written + 1
  end
end
return written
