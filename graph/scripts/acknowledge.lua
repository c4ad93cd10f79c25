#!lua
-- Acknowledge projected facts and advance the drained mark.
-- KEYS: 1 {log}   2 {log}:drained
-- ARGV: 1 consumer group   2 milliseconds between 1970 and the numbers' epoch   then the entries to acknowledge
-- Returns the drained mark as a string.
local number = function(id)
  local ms, sequence = string.match(id, '(%d+)-(%d+)')
  return math.max(0, (tonumber(ms) - tonumber(ARGV[2])) * 4096 + tonumber(sequence))
end
if #ARGV > 2 then redis.call('XACK', KEYS[1], ARGV[1], unpack(ARGV, 3)) end
local drained = 0
local pending = redis.call('XPENDING', KEYS[1], ARGV[1])
if pending[1] > 0 then
  drained = number(pending[2]) - 1
else
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
    local fields = {}
    for i = 1, #group, 2 do fields[group[i]] = group[i + 1] end
    if fields['name'] == ARGV[1] then drained = number(fields['last-delivered-id']) end
  end
end
drained = math.max(drained, tonumber(redis.call('GET', KEYS[2]) or 0))
local mark = string.format('%.0f', drained)
redis.call('SET', KEYS[2], mark)
return mark
