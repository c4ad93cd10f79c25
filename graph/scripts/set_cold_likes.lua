#!lua flags=allow-oom
-- Set the number of a post's archived likes, unless the floor or the number has changed since the rows were counted.
-- KEYS: 1 likes:{p}   2 likes:{p}:cold   3 post:{p}
-- ARGV: 1 floor   2 former number, '' if there was none   3 new number
-- Returns 1, or 0 if the floor or the number has changed.
if floor_of(KEYS[1]) ~= tonumber(ARGV[1]) then return 0 end
if (redis.call('GET', KEYS[2]) or '') ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[2], ARGV[3])
redis.call('HSET', KEYS[3], 'likes', redis.call('ZCARD', KEYS[1]) - 1 + tonumber(ARGV[3]))
return 1
