#!lua
-- Charge all rates of a holder, or none if one would be exceeded (GCRA, the generic cell rate algorithm).
-- A negative cost returns units. A cost with a debt is charged as far as the debt permits, and never refused.
-- KEYS: 1 rate:{holder}
-- ARGV: for each rate its name, then in microseconds of refilling: the cost, the burst, the advance to take, of which
--       no more is taken than the bucket holds, and the debt that the bucket may have after this charge
-- Returns 1 if the rates were charged, else 0; then for each rate the microseconds until its bucket is full, and the
-- microseconds taken in advance.
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local charged, rates, longest = 1, {}, 0
for i = 1, #ARGV, 5 do
  local cost, burst, debt = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), tonumber(ARGV[i + 4])
  local full = tonumber(redis.call('HGET', KEYS[1], ARGV[i]) or now)
  -- A debt is at most one burst. If the clock was set back, the bucket counts as empty.
  full = math.max(full, now)
  if full > now + 2 * burst then full = now + burst end
  local left = burst - (full - now)
  if debt > 0 then cost = math.max(0, math.min(cost, left + debt)) end
  left = left - cost
  if left < 0 and debt == 0 then charged = 0 end
  rates[#rates + 1] = {ARGV[i], full, cost, math.max(0, math.min(tonumber(ARGV[i + 3]), left))}
end
local answer = {charged}
for _, rate in ipairs(rates) do
  local full, advance = rate[2], 0
  if charged == 1 then
    full, advance = math.max(full + rate[3] + rate[4], now), rate[4]
    redis.call('HSET', KEYS[1], rate[1], string.format('%.0f', full))
    longest = math.max(longest, math.ceil((full - now) / 1000) + 1)
  end
  answer[#answer + 1] = full - now
  answer[#answer + 1] = advance
end
if charged == 1 then
  redis.call('PEXPIRE', KEYS[1], longest, 'GT')
  redis.call('PEXPIRE', KEYS[1], longest, 'NX')
end
return answer
