-- Let viewers follow an author, in an order that is independent of their ids.
-- ARGV: 1 format of following:{v}   2 followers:{a}   3 the author   4 first viewer of all   5 index of the author's
--       first follower   6 number of all followers of the author   7 index among them to start with
--       8 number of followers to add now   9 first number of a follow   10 stride, coprime to ARGV 6
local pairs, all, stride = {}, tonumber(ARGV[6]), tonumber(ARGV[10])
for place = tonumber(ARGV[7]), tonumber(ARGV[7]) + tonumber(ARGV[8]) - 1 do
  local viewer = string.format('%.0f', tonumber(ARGV[4]) + (tonumber(ARGV[5]) + place) * 4096)
  local number = string.format('%.0f', tonumber(ARGV[9]) + (place * stride % all) * 4096)
  redis.call('ZADD', string.format(ARGV[1], viewer), number, ARGV[3])
  pairs[#pairs + 1], pairs[#pairs + 2] = number, viewer
  if #pairs >= 2000 then
    redis.call('ZADD', ARGV[2], unpack(pairs))
    pairs = {}
  end
end
if #pairs > 0 then redis.call('ZADD', ARGV[2], unpack(pairs)) end
