#!lua flags=allow-oom
-- Put a follow into the right set of a list of follows, unless it has changed since the comparison or a
-- block between the two users is newer than what was compared.
-- KEYS: 1 the members   2 the tombstones   3 the held follows   4 blocking:{u}   5 its tombstones   6 blockers:{u}
--       7 its tombstones   8 optional: a home cache to delete
-- ARGV: 1 user   2 set in which the follow was found, by its place in KEYS, 0 for none   3 its number there
--       4 set in which the follow belongs, 0 for none   5 its number there   6 number up to which blocks were compared
-- Returns 1, or 0 if the follow or a block has changed.
local found, at = 0, 0
for _, i in ipairs({2, 3, 1}) do -- a member takes precedence over a held follow, and a held follow over a tombstone
  local number = redis.call('ZSCORE', KEYS[i], ARGV[1])
  if number then found, at = i, tonumber(number) end
end
if found ~= tonumber(ARGV[2]) or at ~= tonumber(ARGV[3]) then return 0 end
for i = 4, 7 do
  if score(KEYS[i], ARGV[1]) > tonumber(ARGV[6]) then return 0 end
end
local target = tonumber(ARGV[4])
if target > 0 then
  place(KEYS[target], ARGV[5], ARGV[1], KEYS[1], KEYS[2], KEYS[3])
else
  for i = 1, 3 do redis.call('ZREM', KEYS[i], ARGV[1]) end
end
if KEYS[8] then redis.call('UNLINK', KEYS[8]) end
return 1
