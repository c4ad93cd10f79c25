#!lua
-- Insert a post into home caches. Never creates one: without a cache the viewer is hibernated, and reads merge.
-- KEYS: for each viewer home:{v}, following:{v}
-- ARGV: 1 author   2 post   3 'own' if the viewer is the author, else ''   4 most posts a cache may hold
-- Returns how many caches took it. A full cache is cut by a tenth more than it must, so that not every insertion cuts.
local author, post, own, most = ARGV[1], ARGV[2], ARGV[3] == 'own', tonumber(ARGV[4])
local slack = math.floor(most / 10)
local number, inserted = tonumber(post), 0
for i = 1, #KEYS, 2 do
  local home = KEYS[i]
  local floor = redis.call('ZSCORE', home, 'f')
  local wanted
  if floor then wanted = number > tonumber(floor) else wanted = redis.call('EXISTS', home) == 1 end
  if wanted and (own or redis.call('ZSCORE', KEYS[i + 1], author)) then
    redis.call('ZADD', home, post, post)
    inserted = inserted + 1
    if floor and redis.call('ZCARD', home) > most + 1 then
      local above = '(' .. string.format('%.0f', tonumber(floor))
      local surplus = redis.call('ZCOUNT', home, above, '(inf') - most
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
