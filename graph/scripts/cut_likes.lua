#!lua flags=allow-oom
-- Remove the oldest members from a set of likes, if the archive holds all of them.
-- KEYS: 1 likes:{p} or liked:{u}   2 for a post likes:{p}:cold
-- ARGV: 1 current archive floor, 0 if there is none   2 new floor   then the members between them that the archive
--       holds, each followed by its number
-- Returns 'cut', 'differs' if the set holds another like between the floors, or 'overtaken' if the floor has changed.
if floor_of(KEYS[1]) ~= tonumber(ARGV[1]) then return 'overtaken' end
local archived = {}
for i = 3, #ARGV, 2 do archived[ARGV[i]] = tonumber(ARGV[i + 1]) end
local hot = redis.call('ZRANGE', KEYS[1], '(' .. ARGV[1], ARGV[2], 'BYSCORE', 'WITHSCORES')
for i = 1, #hot, 2 do
  if archived[hot[i]] ~= tonumber(hot[i + 1]) then return 'differs' end
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[1], ARGV[2], 'f')
if KEYS[2] then redis.call('INCRBY', KEYS[2], #hot / 2) end
return 'cut'
