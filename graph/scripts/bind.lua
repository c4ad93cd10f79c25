#!lua
-- Bind a store that never held an event to an archive.
-- KEYS: 1 {log}   2 {log}:binding   3 {log}:rebuild
-- ARGV: 1 the binding as it was read, '' if absent   2 the new binding
-- Returns 1, or 0 if the binding has changed, the store holds events, or it is being rebuilt.
if (redis.call('GET', KEYS[2]) or '') ~= ARGV[1] or redis.call('EXISTS', KEYS[3]) == 1 then return 0 end
if redis.call('EXISTS', KEYS[1]) == 1 then
  local info = redis.call('XINFO', 'STREAM', KEYS[1])
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' and info[i + 1] ~= '0-0' then return 0 end
  end
end
redis.call('SET', KEYS[2], ARGV[2])
return 1
