#!lua
-- Append events to the log: assign their numbers, add them to the stream, and store them under the idempotency key.
-- Events of deleted users, and follows of them, are refused.
-- KEYS: 1 {log}   2 {log}:idempotency:<user>:<key>   3 {log}:binding   4 {log}:deleted
-- ARGV: 1 highest number that the caller knows   2 hash of the events   3 lifetime of the key in seconds
--       4 milliseconds between 1970 and the epoch of numbers   5 the store's binding
--       6 highest length of the log with these events   7 highest number that the caller's clock allows
--       8 '1' to also accept events of deleted users and follows of them
--       then for each event: its kind; its actor and its subject, or '' if it has none; its body as JSON
-- Returns {'appended' | 'repeated', number, number, …}, with numbers as strings; or, if nothing is written,
--       {'replaced' | 'mismatch' | 'overloaded'}, {'ahead', the last number that the events would have had},
--       {'deleted'} if an acting user is deleted, or {'followed', user, …} with the deleted users who are followed.
if redis.call('GET', KEYS[3]) ~= ARGV[5] then return {'replaced'} end
local known = redis.call('GET', KEYS[2])
if known then
  local numbers = {}
  for word in string.gmatch(known, '%S+') do numbers[#numbers + 1] = word end
  local hash = table.remove(numbers, 1)
  if hash ~= ARGV[2] and hash ~= '*' then return {'mismatch'} end
  table.insert(numbers, 1, 'repeated')
  return numbers
end
local count = (#ARGV - 8) / 4
if ARGV[8] ~= '1' and redis.call('EXISTS', KEYS[4]) == 1 then
  local refused = {'followed'}
  for i = 1, count do
    local kind, actor, subject = unpack(ARGV, 5 + 4 * i, 7 + 4 * i)
    if redis.call('HEXISTS', KEYS[4], actor) == 1 then return {'deleted'} end
    if kind == 'Followed' and redis.call('HEXISTS', KEYS[4], subject) == 1 then refused[#refused + 1] = subject end
  end
  if #refused > 1 then return refused end
end
if redis.call('XLEN', KEYS[1]) + count > tonumber(ARGV[6]) then return {'overloaded'} end
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
local before = math.max(last, now * 4096 - 1)
if before + count > tonumber(ARGV[7]) then return {'ahead', string.format('%.0f', before + count)} end
local reply, words = {'appended'}, {ARGV[2]}
for i = 1, count do
  local number = before + i
  local id = string.format('%.0f-%.0f', math.floor(number / 4096) + epoch, number % 4096)
  local kind, actor, subject, body = unpack(ARGV, 5 + 4 * i, 8 + 4 * i)
  local fields = {'kind', kind}
  if actor ~= '' then fields[3], fields[4] = 'actor', actor end
  if subject ~= '' then fields[#fields + 1], fields[#fields + 2] = 'subject', subject end
  fields[#fields + 1], fields[#fields + 2] = 'body', body
  redis.call('XADD', KEYS[1], id, unpack(fields))
  reply[#reply + 1] = string.format('%.0f', number)
  words[#words + 1] = reply[#reply]
  if kind == 'UserDeleted' then redis.call('HSET', KEYS[4], actor, reply[#reply]) end
end
redis.call('SET', KEYS[2], table.concat(words, ' '), 'EX', ARGV[3])
return reply
