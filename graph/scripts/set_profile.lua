#!lua
-- Set fields of profiles, each only if the event's number is above that of the field's last change.
-- KEYS: user:{u} of each
-- ARGV: 1 for each an array of the event's number, then fields and values by turns, strings, as JSON
-- Returns how many fields were set.
local set = 0
for i, change in ipairs(cjson.decode(ARGV[1])) do
  local number, marks, words = change[1], {}, {}
  for j = 2, #change, 2 do marks[#marks + 1] = change[j] .. ':at' end
  for k, before in ipairs(redis.call('HMGET', KEYS[i], unpack(marks))) do
    if not before or tonumber(number) > tonumber(before) then
      for _, word in ipairs({change[2 * k], change[2 * k + 1], marks[k], number}) do words[#words + 1] = word end
    end
  end
  if #words > 0 then redis.call('HSET', KEYS[i], unpack(words)) end
  set = set + #words / 4
end
return set
