#!lua
-- Open the tasks of one post's fan-out; the watermark waits for all of them.
-- KEYS: 1 {log}:fanouts   2 {log}:fanouts:open
-- ARGV: 1 post   2 author   then for each task the bounds of the follow numbers it serves: low (exclusive) and high
-- Returns how many tasks were opened.
for i = 3, #ARGV, 2 do
  local entry = redis.call('XADD', KEYS[1], '*', 'post', ARGV[1], 'author', ARGV[2], 'low', ARGV[i], 'high', ARGV[i + 1])
  redis.call('ZADD', KEYS[2], ARGV[1], entry)
end
return (#ARGV - 2) / 2
