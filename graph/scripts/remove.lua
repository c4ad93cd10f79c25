#!lua flags=allow-oom
-- Remove elements from a versioned set, and write tombstones. An element is removed if the number of its event is above
-- its version. Old tombstones are then replaced by the tombstone floor.
-- KEYS: 1 the tombstones   then the sets that may hold an element   last, if ARGV 2 is 1: a home cache to delete if the
--       set changes
-- ARGV: 1 highest number of a tombstone that may be trimmed   2 whether a home cache is given, 1 or 0   then pairs of
--       member and number
-- Returns for each pair 1 if the element was removed, else 0.
local gone, removed, home = KEYS[1], {}, nil
if ARGV[2] == '1' then home = table.remove(KEYS) end
local floor = floor_of(gone)
for i = 3, #ARGV, 2 do
  local member, number = ARGV[i], ARGV[i + 1]
  local is_removed = tonumber(number) > version(floor, member, unpack(KEYS))
  if is_removed then
    if home then redis.call('UNLINK', home) end
    place(gone, number, member, unpack(KEYS))
  end
  removed[#removed + 1] = is_removed and 1 or 0
end
trim(gone, floor, ARGV[1])
return removed
