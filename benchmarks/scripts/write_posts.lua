-- Write the posts of authors, who publish in turn, one post every `step`.
-- ARGV: 1 format of posts:{a}   2 format of post:{p}   3 first author of all   4 number of all authors   5 index of the
--       first author to write   6 number of authors to write   7 posts per author   8 first post of all
--       9 step between two posts   10 format of a text, filled with the post's number
local all, start, count, each = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
for index = start, start + count - 1 do
  local author = string.format('%.0f', tonumber(ARGV[3]) + index * 4096)
  local key, pairs = string.format(ARGV[1], author), {0, 'f'}
  for nth = 0, each - 1 do
    local post = string.format('%.0f', tonumber(ARGV[8]) + (nth * all + index) * tonumber(ARGV[9]))
    pairs[#pairs + 1], pairs[#pairs + 2] = post, post
    redis.call('HSET', string.format(ARGV[2], post), 'id', post, 'author', author, 'text',
      string.format(ARGV[10], post), 'platform', 'web')
    if #pairs >= 2000 or nth == each - 1 then
      redis.call('ZADD', key, unpack(pairs))
      pairs = {}
    end
  end
end
