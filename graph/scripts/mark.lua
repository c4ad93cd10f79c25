#!lua flags=allow-oom
-- Mark an author in home caches as pulled: reads merge the author's timeline. Viewers without a cache, and viewers who
-- do not follow the author or mute the author, are skipped.
-- KEYS: for each viewer home:{v}, following:{v}, muting:{v}
-- ARGV: 1 author
-- Returns the number of marked caches.
local marked = 0
for i = 1, #KEYS, 3 do
  if redis.call('EXISTS', KEYS[i]) == 1 and redis.call('ZSCORE', KEYS[i + 1], ARGV[1])
    and not redis.call('ZSCORE', KEYS[i + 2], ARGV[1]) then
    redis.call('ZADD', KEYS[i], -1, 'a' .. ARGV[1])
    marked = marked + 1
  end
end
return marked
