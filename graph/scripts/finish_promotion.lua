#!lua flags=allow-oom
-- Set an author's delivery mode to pull:<post>, if the promotion that marked all caches is still the current one.
-- KEYS: 1 delivery:{a}
-- ARGV: 1 the mode that the promotion began with: promoting:<post>:<token>
-- Returns the mode that now applies, '' if absent.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('SET', KEYS[1], 'pull:' .. string.match(ARGV[1], 'promoting:(%d+)'))
end
return redis.call('GET', KEYS[1]) or ''
