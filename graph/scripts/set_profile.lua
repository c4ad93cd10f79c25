#!lua flags=allow-oom
-- Set fields of profiles. A field is set if the number of the event is above that of its last change. The profile of a
-- deleted user stays empty.
-- KEYS: for each change user:{u}
-- ARGV: 1 JSON: for each change a flat array of the number of the event, then fields and values, as strings
-- Returns the indexes of the changes whose users are deleted, counted from 1.
local refused = {}
for i, change in ipairs(cjson.decode(ARGV[1])) do
  local number, versions, words = change[1], {}, {}
  for j = 2, #change, 2 do versions[#versions + 1] = change[j] .. ':at' end
  local held = redis.call('HMGET', KEYS[i], 'deleted', unpack(versions))
  local deleted = table.remove(held, 1)
  if deleted then refused[#refused + 1] = i end
  for k, before in ipairs(deleted and {} or held) do
    if not before or tonumber(number) > tonumber(before) then
      for _, word in ipairs({change[2 * k], change[2 * k + 1], versions[k], number}) do words[#words + 1] = word end
    end
  end
  if #words > 0 then redis.call('HSET', KEYS[i], unpack(words)) end
end
return refused
