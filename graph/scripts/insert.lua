#!lua flags=allow-oom
-- Insert a post into home caches. Viewers without a cache are skipped, and so are viewers who mute the author, or do
-- not follow the author, for example because of a block.
-- KEYS: for each viewer home:{v}, following:{v}, muting:{v}
-- ARGV: 1 author   2 post   3 'own' if the viewer is the author, else ''   4 size limit of a cache
-- Returns the number of caches that now hold the post.
-- A full cache is trimmed by a tenth more than necessary, so that not every insertion trims.
local author, post, own, limit = ARGV[1], ARGV[2], ARGV[3] == 'own', tonumber(ARGV[4])
local slack = math.floor(limit / 10)
local number, inserted = tonumber(post), 0
for i = 1, #KEYS, 3 do
  local home = KEYS[i]
  local floor = redis.call('ZSCORE', home, 'f')
  local wanted
  if floor then wanted = number > tonumber(floor) else wanted = redis.call('EXISTS', home) == 1 end
  local followed = function()
    return redis.call('ZSCORE', KEYS[i + 1], author) and not redis.call('ZSCORE', KEYS[i + 2], author)
  end
  if wanted and (own or followed()) then
    redis.call('ZADD', home, post, post)
    inserted = inserted + 1
    if floor and redis.call('ZCARD', home) > limit + 1 then
      local above = '(' .. string.format('%.0f', tonumber(floor))
      local surplus = redis.call('ZCOUNT', home, above, '(inf') - limit
      if surplus > 0 then
        surplus = surplus + slack
        local highest = redis.call('ZRANGE', home, above, '(inf', 'BYSCORE', 'LIMIT', surplus - 1, 1)[1]
        redis.call('ZREMRANGEBYSCORE', home, 0, highest)
        redis.call('ZADD', home, highest, 'f')
      end
    end
  end
end
return inserted
