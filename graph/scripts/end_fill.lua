#!lua
-- End a rebuild: set the positions of the log as if every event in the archive had been appended, projected, archived and
-- trimmed, then bind the store, which allows appends.
-- KEYS: 1 {log}   2 {log}:binding   3 {log}:rebuild   4 {log}:watermark   5 {log}:archived   6 {log}:trimmed
-- ARGV: 1 the binding, which names this rebuild   2 archive watermark   3 its stream entry   4 consumer group
-- Returns 1, or 0 if another rebuild has taken over.
if redis.call('GET', KEYS[3]) ~= ARGV[1] then return 0 end
redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[4], '0', 'MKSTREAM')
if ARGV[2] ~= '0' then redis.call('XSETID', KEYS[1], ARGV[3]) end
redis.call('XGROUP', 'SETID', KEYS[1], ARGV[4], '$')
for i = 4, 6 do redis.call('SET', KEYS[i], ARGV[2]) end
redis.call('DEL', KEYS[3])
redis.call('SET', KEYS[2], ARGV[1])
return 1
