#!lua
-- Append events to the log: assign their numbers, add them to the stream, and store them under the idempotency key.
-- KEYS: 1 {log}   2 {log}:idempotency:<user>:<key>
-- ARGV: 1 highest number that the caller knows   2 hash of the events   3 lifetime of the key in seconds
--       4 milliseconds between 1970 and the epoch of numbers   5 number that the first event must get, or ''
--       then for each event: its time in milliseconds since the epoch, or '' for now; the event as JSON
-- Returns {'appended' | 'repeated' | 'mismatch' | 'exhausted' | 'out of step', number, number, …}; numbers are
-- strings.
local known = redis.call('GET', KEYS[2])
if known then
  local numbers = {}
  for word in string.gmatch(known, '%S+') do numbers[#numbers + 1] = word end
  local hash = table.remove(numbers, 1)
  if hash ~= ARGV[2] then return {'mismatch'} end
  table.insert(numbers, 1, 'repeated')
  return numbers
end
local epoch = tonumber(ARGV[4])
local last = tonumber(ARGV[1])
if redis.call('EXISTS', KEYS[1]) == 1 then
  local info = redis.call('XINFO', 'STREAM', KEYS[1])
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then
      local ms, sequence = string.match(info[i + 1], '(%d+)-(%d+)')
      last = math.max(last, (tonumber(ms) - epoch) * 4096 + tonumber(sequence))
    end
  end
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) - epoch
local numbers, n = {}, last
for i = 6, #ARGV, 2 do
  local at = ARGV[i] == '' and now or tonumber(ARGV[i])
  n = math.max(n, at * 4096 - 1) + 1
  if n >= 9007199254740992 then return {'exhausted'} end
  numbers[#numbers + 1] = n
end
if ARGV[5] ~= '' and tonumber(ARGV[5]) ~= numbers[1] then return {'out of step'} end
local reply, words = {'appended'}, {ARGV[2]}
for i, number in ipairs(numbers) do
  local id = string.format('%.0f-%.0f', math.floor(number / 4096) + epoch, number % 4096)
  redis.call('XADD', KEYS[1], id, 'event', ARGV[5 + 2 * i])
  reply[#reply + 1] = string.format('%.0f', number)
  words[#words + 1] = reply[#reply]
end
redis.call('SET', KEYS[2], table.concat(words, ' '), 'EX', ARGV[3])
return reply
