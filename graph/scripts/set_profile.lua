#!lua flags=allow-oom
-- Set fields of profiles. A field is set if the number of the event is above that of its last change.
-- KEYS: for each change user:{u}
-- ARGV: 1 JSON: for each change a flat array of the number of the event, then fields and values, as strings
-- Returns the number of fields that were set.
local set = 0
for i, change in ipairs(cjson.decode(ARGV[1])) do
  local number, versions, words = change[1], {}, {}
  for j = 2, #change, 2 do versions[#versions + 1] = change[j] .. ':at' end
  for k, before in ipairs(redis.call('HMGET', KEYS[i], unpack(versions))) do
    if not before or tonumber(number) > tonumber(before) then
      for _, word in ipairs({change[2 * k], change[2 * k + 1], versions[k], number}) do words[#words + 1] = word end
    end
  end
  if #words > 0 then redis.call('HSET', KEYS[i], unpack(words)) end
  set = set + #words / 4
end
return set
