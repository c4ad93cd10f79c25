#!lua flags=allow-oom
-- Add likes to the sets of posts, remove them, and write the counts into the records. Deleted posts are skipped. A change
-- applies if its number is above the version of the user: the score, else that of the tombstone, else the higher floor.
-- A user in neither set may have liked the post at or below the archive floor, and is then among the archived likes: the
-- caller must ask the archive whether the user liked the post as of the higher floor.
-- KEYS: for each post likes:{p}, likes:{p}:gone, likes:{p}:cold, post:{p}
-- ARGV: 1 highest number of a tombstone that may be trimmed
--       2 JSON: for each post a flat array with, for each change, the user, the number of the event (negative for an
--         unlike), the floor that the archive was asked about or '', and '1' if the user liked the post as of it
-- Returns for each post the floor that the archive must be asked about, as a string, and the users whose changes are not
-- applied; or an empty array if there are none.
local replies = {}
for nth, changes in ipairs(cjson.decode(ARGV[2])) do
  local set, gone, cold, post = unpack(KEYS, 4 * nth - 3, 4 * nth)
  local asked = {}
  if redis.call('HEXISTS', post, 'deleted') == 0 then
    local archived, trimmed = floor_of(set), floor_of(gone)
    local floor, unliked = math.max(archived, trimmed), false
    for i = 1, #changes, 4 do
      local user, word = changes[i], changes[i + 1]
      local number = math.abs(tonumber(word))
      local known = version(nil, user, set, gone)
      local was_archived = false
      if not known and archived > 0 and number > floor then
        if tonumber(changes[i + 2]) == floor then
          was_archived = changes[i + 3] == '1'
        else
          if #asked == 0 then asked[1] = string.format('%.0f', floor) end
          asked[#asked + 1] = user
          number = 0
        end
      end
      if number > (known or floor) then
        if was_archived then redis.call('DECR', cold) end
        if tonumber(word) > 0 then
          place(set, word, user, gone)
        else
          place(gone, string.sub(word, 2), user, set)
          unliked = true
        end
      end
    end
    if unliked then trim(gone, trimmed, ARGV[1]) end
    write_count(post, 'likes', length(set, cold))
  end
  replies[nth] = asked
end
return replies
