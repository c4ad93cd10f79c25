#!lua
-- Run one command on each key, to write many keys in one call.
-- KEYS: the key of each command; a key may occur more than once
-- ARGV: 1 JSON: for each command an array of its name and its words after the key, as strings
-- Returns the number of commands.
for i, words in ipairs(cjson.decode(ARGV[1])) do redis.call(words[1], KEYS[i], unpack(words, 2)) end
return #KEYS
