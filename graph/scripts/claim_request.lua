#!lua flags=allow-oom
-- Give the idempotency key of a request to the event that it appended, unless a repetition has appended another one.
-- The content of the request is no longer known, so the content of a repetition is not compared ('*').
-- KEYS: 1 {log}:idempotency:<user>:<key>   ARGV: 1 number of the event   2 lifetime of the key in seconds
-- Returns 1 if the key belongs to the event, 0 if it belongs to another one.
local known = redis.call('GET', KEYS[1])
if not known then
  redis.call('SET', KEYS[1], '* ' .. ARGV[1], 'EX', ARGV[2])
  return 1
end
return string.match(known, '%S+ (%d+)') == ARGV[1] and 1 or 0
