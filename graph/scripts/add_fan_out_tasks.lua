#!lua flags=allow-oom
-- Add the tasks of one post's fan-out, unless they were added before. The watermark stays below the post until all of
-- them are done.
-- KEYS: 1 {log}:fanouts   2 {log}:fanouts:open   3 {log}:fanouts:added
-- ARGV: 1 post   2 author   then for each task the range of follow numbers: low (exclusive) and high (inclusive)
-- Returns the number of added tasks.
if redis.call('ZADD', KEYS[3], 'NX', ARGV[1], ARGV[1]) == 0 then return 0 end
for i = 3, #ARGV, 2 do
  local low, high = ARGV[i], ARGV[i + 1]
  local entry = redis.call('XADD', KEYS[1], '*', 'post', ARGV[1], 'author', ARGV[2], 'low', low, 'high', high)
  redis.call('ZADD', KEYS[2], ARGV[1], entry)
end
return (#ARGV - 2) / 2
