"""The defects that a repair finds and corrects, by the part of the data."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Defect:
    """A kind of damage to one part of the data. `text` is a clause, and `correction` a clause in the imperative."""

    part: str
    text: str
    correction: str


ACCOUNTS = "accounts"
BLOCKS = "blocks"
FOLLOWS = "follows"
POSTS = "posts"
PUBLIC = "the public timeline"
LIKES = "likes"
LISTS = "lists"
NOTIFICATIONS = "notifications"
HOMES = "home timelines"

PROFILE_WRONG = Defect(ACCOUNTS, "a field or permission of a profile is wrong", "set it to what the last event says")
LOGIN_WRONG = Defect(ACCOUNTS, "a login is missing or wrong", "set the user and the password hash from the archive")
SESSION_LIVE = Defect(ACCOUNTS, "a session that was logged out is live", "end the session")
ACCOUNT_UNKNOWN = Defect(ACCOUNTS, "an account is missing from the archive", "none: restore a backup of the archive")
BLOCK_WRONG = Defect(
    BLOCKS, "a block is missing or wrong", "set it to what the last event says, and delete the home cache"
)
LIST_WRONG = Defect(LISTS, "a list, its name or a member is missing or wrong", "set it to what the last event says")
FOLLOW_WRONG = Defect(
    FOLLOWS,
    "a follow or an unfollow is missing or wrong in the list of followees or followers",
    "set it to what the last event says, and delete the follower's home cache",
)
FLOOR_WRONG = Defect(
    POSTS,
    "the archive floor of a timeline is missing, or the store lacks posts above it and the archive has many",
    "set the floor below the author's newest posts",
)
POST_UNLISTED = Defect(POSTS, "a post is missing or misplaced in a timeline or another list", "list the post")
POST_LISTED = Defect(
    POSTS,
    "a timeline or another list has a post that is deleted, is below the archive floor, or does not belong there",
    "remove the post from the list",
)
RECORD_WRONG = Defect(POSTS, "the record of a post is missing or wrong", "write the record that the archive holds")
RECORD_LEFT = Defect(
    POSTS,
    "a post that is deleted or below the archive floor has a record",
    "write a tombstone, or delete the record of the archived post",
)
POST_UNKNOWN = Defect(
    POSTS,
    "a post is missing from the archive",
    "add the post to the archive; if it cannot be read, remove it from the store",
)
DELETION_UNKNOWN = Defect(POSTS, "a deletion is missing from the archive", "delete the post again")
REPOST_WRONG = Defect(
    POSTS, "an entry in a user's register of reposts is missing or wrong", "set it to what the last event says"
)
REPOST_LEFT = Defect(POSTS, "a repost of a deleted or lost post is left over", "undo the repost")
COUNT_WRONG = Defect(POSTS, "the count of an author's archived posts is wrong", "set the count from the archive")
LENGTH_WRONG = Defect(POSTS, "a number of replies, reposts or quotes is wrong", "count them again")
PUBLIC_WRONG = Defect(
    PUBLIC,
    "a post is missing from the public timeline in the archive, or is there by mistake",
    "add or remove it as the events say",
)
SUSPENSION_WRONG = Defect(
    PUBLIC,
    "the archive has not recorded the latest decision about a suspension",
    "record it; the worker then moves the user's posts",
)
LIKE_WRONG = Defect(
    LIKES,
    "a like is missing or wrong, among the likes of its post or among those of its user",
    "set it to what the last event says, and count the likes again",
)
LIKE_FLOOR_WRONG = Defect(
    LIKES,
    "the archive floor of likes is missing, or the store lacks likes above it and the archive has many",
    "set the floor below the newest likes",
)
LIKE_COUNT_WRONG = Defect(LIKES, "a number of likes is wrong", "count the likes again")
LIKE_LEFT = Defect(LIKES, "likes of a deleted or lost post are left over", "remove them")
NOTIFICATION_WRONG = Defect(
    NOTIFICATIONS,
    "a notification is missing, misplaced or without an event, or a list that is not full has dropped some",
    "set it to what the events say",
)
READ_MARK_WRONG = Defect(NOTIFICATIONS, "notifications that were read count as unread", "set how far they were read")
CACHE_WRONG = Defect(
    HOMES,
    "a home cache is malformed, lacks a post, or includes an author whom the viewer does not follow",
    "delete the cache; the next read rebuilds it",
)
