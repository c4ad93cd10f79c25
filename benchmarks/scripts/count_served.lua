-- Count the viewers whose home cache holds a post. If the post is '', delete the caches instead.
-- ARGV: 1 format of home:{v}   2 first viewer of all   3 index of the first viewer to count   4 number   5 the post
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
