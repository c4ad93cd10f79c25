#!lua flags=allow-oom
-- Remove the oldest posts from a hot timeline, if the archive holds all of them.
-- KEYS: 1 posts:{a}   2 cold:{a}
-- ARGV: 1 current archive floor   2 new floor   then the posts between them that the archive holds
-- Returns 'cut', 'differs' if the timeline holds another post between the floors, or 'overtaken' if the floor has
-- changed.
if floor_of(KEYS[1]) ~= tonumber(ARGV[1]) then return 'overtaken' end
local archived = {}
for i = 3, #ARGV do archived[ARGV[i]] = true end
local hot = redis.call('ZRANGE', KEYS[1], '(' .. ARGV[1], ARGV[2], 'BYSCORE')
for _, post in ipairs(hot) do
  if post ~= 'f' and not archived[post] then return 'differs' end
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[1], ARGV[2], 'f')
redis.call('INCRBY', KEYS[2], #hot)
return 'cut'
