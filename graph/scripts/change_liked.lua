#!lua flags=allow-oom
-- Add posts to the sets of posts that users like, and remove them. A change applies if its number is above the version of
-- the post: its score, else that of its tombstone, else the higher floor. Old tombstones are then trimmed.
-- KEYS: for each user liked:{u}, liked:{u}:gone
-- ARGV: 1 highest number of a tombstone that may be trimmed
--       2 JSON: for each user a flat array with, for each change, the post and the number of the event (negative for an
--         unlike)
-- Returns the number of changes that were applied.
local applied = 0
for user, changes in ipairs(cjson.decode(ARGV[2])) do
  local set, gone = unpack(KEYS, 2 * user - 1, 2 * user)
  local trimmed, unliked = floor_of(gone), false
  local floor = math.max(floor_of(set), trimmed)
  for i = 1, #changes, 2 do
    local post, word = changes[i], changes[i + 1]
    if math.abs(tonumber(word)) > version(floor, post, set, gone) then
      applied = applied + 1
      if tonumber(word) > 0 then
        place(set, word, post, gone)
      else
        place(gone, string.sub(word, 2), post, set)
        unliked = true
      end
    end
  end
  if unliked then trim(gone, trimmed, ARGV[1]) end
end
return applied
