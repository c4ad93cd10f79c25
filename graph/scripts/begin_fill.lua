#!lua
-- Reserve a store that holds no events for a rebuild, or take over an unfinished rebuild from the same archive. Until the
-- rebuild ends, the store has no binding, so nothing can be appended.
-- KEYS: 1 {log}   2 {log}:binding   3 {log}:rebuild
-- ARGV: 1 the binding of the rebuilt store   2 id of the archive
-- Returns 'begun', 'resumed', 'used' if the store holds events, or 'other' if the unfinished rebuild is from another
--       archive. 'used' and 'other' change nothing.
local unfinished = redis.call('GET', KEYS[3])
if unfinished and string.match(unfinished, ':([^:]*)') ~= ARGV[2] then return 'other' end
if redis.call('EXISTS', KEYS[1]) == 1 then
  local info = redis.call('XINFO', 'STREAM', KEYS[1])
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' and info[i + 1] ~= '0-0' then return 'used' end
  end
end
redis.call('DEL', KEYS[2])
redis.call('SET', KEYS[3], ARGV[1])
return unfinished and 'resumed' or 'begun'
