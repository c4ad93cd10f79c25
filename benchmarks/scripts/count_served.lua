-- Count the viewers whose home cache holds a post; forget the caches instead if the post is ''.
-- ARGV: 1 format of home:{v}   2 first viewer of all   3 the first of these, counted from 0   4 how many   5 the post
local count = 0
for index = tonumber(ARGV[3]), tonumber(ARGV[3]) + tonumber(ARGV[4]) - 1 do
  local home = string.format(ARGV[1], string.format('%.0f', tonumber(ARGV[2]) + index * 4096))
  if ARGV[5] == '' then
    count = count + redis.call('UNLINK', home)
  elseif redis.call('ZSCORE', home, ARGV[5]) then
    count = count + 1
  end
end
return count
