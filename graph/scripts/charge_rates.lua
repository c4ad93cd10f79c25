#!lua
-- Charge the rates of one holder: all of them, or none if one would be exceeded (GCRA, the generic cell rate algorithm).
-- KEYS: 1 rate:{holder}   ARGV: for each rate its name, then in microseconds of the store's clock 2 the cost, 3 the burst
-- Returns 1 or 0, whether they were charged, then for each rate the microseconds until its bucket is full.
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local charged, full, changes, longest = 1, {}, {}, 0
for i = 1, #ARGV, 3 do
  local cost, burst = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local at = tonumber(redis.call('HGET', KEYS[1], ARGV[i]) or now)
  -- A clock that was set back must lock nobody out for longer than an empty bucket takes to fill.
  at = math.min(math.max(at, now), now + burst)
  if at + cost - now > burst then charged = 0 end
  full[#full + 1] = {at - now, cost}
  changes[#changes + 1] = ARGV[i]
  changes[#changes + 1] = string.format('%.0f', at + cost)
  longest = math.max(longest, at + cost - now)
end
if charged == 1 then
  redis.call('HSET', KEYS[1], unpack(changes))
  redis.call('PEXPIRE', KEYS[1], math.ceil(longest / 1000) + 1, 'GT')
  redis.call('PEXPIRE', KEYS[1], math.ceil(longest / 1000) + 1, 'NX')
end
local answer = {charged}
for _, rate in ipairs(full) do answer[#answer + 1] = rate[1] + charged * rate[2] end
return answer
