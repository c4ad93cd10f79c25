-- Write viewers: their follows and, unless hibernated, their home caches.
-- ARGV: 1 format of following:{v}   2 format of home:{v}   3 first viewer of all   4 index of the first viewer to write
--       5 number of viewers to write   6 lifetime of caches in seconds
--       7 JSON: for each kind of viewer {following: [number, author, …], home: [number, member, …]}; kinds alternate
local kinds, start = cjson.decode(ARGV[7]), tonumber(ARGV[4])
for index = start, start + tonumber(ARGV[5]) - 1 do
  local viewer = string.format('%.0f', tonumber(ARGV[3]) + index * 4096)
  local kind = kinds[index % #kinds + 1]
  redis.call('ZADD', string.format(ARGV[1], viewer), unpack(kind.following))
  if #kind.home > 0 then
    local home = string.format(ARGV[2], viewer)
    redis.call('ZADD', home, unpack(kind.home))
    redis.call('EXPIRE', home, ARGV[6])
  end
end
