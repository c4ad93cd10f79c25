#!lua flags=no-writes
-- Read the suspended users, unless the caller knows them.
-- KEYS: 1 {suspended}   2 {suspended}:version
-- ARGV: 1 the version that the caller knows   2 maximum number of entries to read at once
-- Returns {} if the version is the same, {version} if there are too many entries, else {version, {user, number, …}}.
local version = redis.call('GET', KEYS[2]) or ''
if version == ARGV[1] then return {} end
if redis.call('HLEN', KEYS[1]) > tonumber(ARGV[2]) then return {version} end
return {version, redis.call('HGETALL', KEYS[1])}
