"""The keys of the store. Only this module builds them.

A cluster hashes the part in `{…}`: all keys of one user share a slot, and so do all keys of the log.

=============================  ==============  ==================================================================
key                            type            content
=============================  ==============  ==================================================================
`{log}`                        stream          events: kind, actor, subject, body (JSON of the other fields); the
                                               entry's id is the event's number
`{log}:idempotency:<user>:<key>` string, TTL   hash of the appended events, `*` if unknown, and their numbers. The key
                                               of a post or a list is a hash of the client's key
`{log}:watermark`              string          every event up to this number is projected
`{log}:archived`               string          every event up to this number is in the archive
`{log}:trimmed`                string          highest number that retention has removed from the log
`{log}:scrubbed`               string          up to this number, texts of deleted posts are removed from the log
`{log}:dead`                   stream          dead letters: events and tasks that failed, with the reason
`{log}:fanouts`                stream          tasks: post, author, follow numbers (low, high]; `attempt` for a
                                               step of a promotion
`{log}:fanouts:open`           sorted set      entry of an open task → its post, which the watermark waits for
`{log}:fanouts:added`          sorted set      post above the watermark whose tasks were added → itself
`{log}:primaries`              hash            replication id of a primary → milliseconds of the log's last entry when
                                               it was last seen; negative if another primary has replaced it
`{log}:lost`                   string          number up to which failovers have lost events, until a worker has
                                               repaired what other shards hold of them
`{log}:dead:dropped`           string          number of dead letters dropped because there were too many
`{log}:binding`                string          `<store id>:<archive id>`: the archive that this store belongs to;
                                               then `:<format>` if that is not 1; absent until the store is complete
`{log}:converting`             string          the former format of the store, until its keys are converted
`{log}:rebuild`                string          the binding that this store gets at the end of `fanline rebuild`
`{log}:archived:progress`      hash            position: entries added to the log up to `{log}:archived`; totals:
                                               events, batches, milliseconds, trimmed (posts)
`{log}:archiver`               string, TTL     the archiver that is active now
`{log}:alarm`                  string, TTL     why the archiver has stopped
`{log}:replicated`             string          time of the last write that replicas were waited for
`{log}:deleted`                hash            user → number of the UserDeleted event, whose later events the log
                                               refuses; negative: number of the UserErased event
`{log}:erasing`                sorted set      deleted user who is not erased yet → number of the UserDeleted event
`{<any>}:mark`                 string, TTL     written so that `WAIT` covers the earlier writes to the server; with a
                                               random suffix in a slot that the server is importing
`login:{<login>}`              hash            secret (argon2id), nonce, user, winner: a claim, then an account; the
                                               nonce of a sign-up with a key is a hash of login, key and name;
                                               `secret:at` → number of the last PasswordChanged event
`login:{<login>}:next:<nonce>` string, TTL     secret of a change of the password that is not projected yet
`reserved:{<hash>}`            string          number of the UserDeleted event of the user whose login has this hash
`rate:{<holder>}`              hash, TTL       rate → time at which its bucket is full, in microseconds
`attempts:{<login>}:<network>` sorted set, TTL failed log-ins from a network (hashed) → time in seconds
`attempts:{<login>}`           sorted set, TTL newest failed log-ins from all networks → time in seconds
`networks:{<login>}`           sorted set, TTL networks that the user has logged in from → last time in seconds
`user:{u}`                     hash            id, login, name, bio, avatar_url, website_url (empty if removed);
                                               `<field>:at` → number that set the field;
                                               `may:<permission>` → number that granted it; negative: revoked;
                                               `password` → number of the last PasswordChanged event;
                                               `suspended` → number that suspended the user; negative: lifted.
                                               Of a deleted user only `deleted` → number of the UserDeleted event
`{suspended}`                  hash            user → number that suspended or deleted the user; negative: lifted
`{suspended}:version`          string          random text that changes with `{suspended}`
`session:{u}`                  hash            session id → its expiry in seconds since 1970
`session:{u}:details`          hash            `<session>:created`, `<session>:used` → seconds since 1970;
                                               `<session>:agent` → user agent; `<session>:password` → number of
                                               the password change before the log-in
`following:{u}`                versioned set   user followed by u → number of the Followed event
`followers:{u}`                versioned set   follower of u → number of the Followed event
`following:{u}:held`           sorted set      user whom u follows across a block → number of the Followed event, which
                                               counts again if the block is lifted before that number
`followers:{u}:held`           sorted set      follower of u across a block → number of the Followed event
`blocking:{u}`                 versioned set   user blocked by u → number of the Blocked event
`blockers:{u}`                 versioned set   user who blocks u → number of the Blocked event
`muting:{u}`                   versioned set   user muted by u → number of the Muted event
`bookmarks:{u}`                versioned set   post bookmarked by u → number of the Bookmarked event
`posts:{u}`                    versioned set   hot post → itself; member `f` → archive floor, at first 0
`cold:{u}`                     string          number of u's live posts in the archive
`replied:{u}`                  versioned set   hot reply by u → itself; member `f` as in `posts:{u}`
`replies:{p}`                  versioned set   hot direct reply to p → itself; member `f` if posts are archived
`reposts:{p}`                  versioned set   hot plain repost of p → itself; member `f` if posts are archived
`quotes:{p}`                   versioned set   hot quote of p → itself; member `f` if posts are archived
`reposted:{u}`                 versioned set   original → u's plain repost of it, which is in `posts:{u}` or archived
`<list>:cold`                  string          number of live posts in the archive, for `replied` to `quotes`
`delivery:{u}`                 string          delivery mode: absent (push), `promoting:<post>:<token>`,
                                               `pull:<post>`, or `pull` after a rebuild
`post:{p}`                     hash            id, author, text, platform, latitude, longitude, request, details (JSON
                                               of the event's other fields); or `deleted`. Beside the record of a live
                                               post, and after it is archived: replies, reposts, quotes, likes (counts
                                               above 0)
`likes:{p}`                    versioned set   user who likes the post → number of the Liked event; member `f` →
                                               archive floor, absent until likes are archived
`likes:{p}:cold`               string          number of likes at or below the archive floor
`liked:{u}`                    versioned set   post that u likes → number of the Liked event; `f` as in `likes:{p}`
`lists:{u}`                    versioned set   list of users of u → itself
`lists:{u}:names`              hash            list → its name; `<list>:at` → number that set the name
`list:{u}:<list>`              versioned set   member of the list → number of the event that added the member
`home:{v}`                     sorted set, TTL home cache: post → itself; `f` → floor; `r<token>` → +inf
                                               during a rebuild; `a<author>` → -1 for pulled authors
`notifications:{u}`            sorted set      `<kind>:<subject>` of a group of notifications → number of its newest
                                               event; `f` → highest number of a group that a full list has dropped
`notifications:{u}:read`       string          number up to which u has read the notifications
=============================  ==============  ==================================================================

A *versioned set* consists of two sorted sets: the members, scored by the number of the event that added them, and in
`…:gone` the tombstones, scored by the number of the event that removed the member. The member `f` of `…:gone` is the
tombstone floor. An event changes a member only if the event's number is greater than the member's version: the score of
the member, else of its tombstone, else of the floor.

An erased user keeps the tombstone in `user:{u}`. The number of the UserErased event is the tombstone floor of each set,
the floor of the notifications, and the number up to which they are read, so that late events change nothing.
"""

from collections.abc import Callable
from typing import TypeAlias

KeyOf: TypeAlias = Callable[[int], str]
"""A function that returns the key of an object by its id. A page needs about a hundred keys, and `str.__mod__` takes
half the time of a Python function."""

LOG = "{log}"
WATERMARK = "{log}:watermark"
ARCHIVED = "{log}:archived"
ARCHIVE_PROGRESS = "{log}:archived:progress"
TRIMMED = "{log}:trimmed"
SCRUBBED = "{log}:scrubbed"
DEAD = "{log}:dead"
FANOUTS = "{log}:fanouts"
OPEN_FANOUTS = "{log}:fanouts:open"
ADDED_FANOUTS = "{log}:fanouts:added"
PRIMARIES = "{log}:primaries"
LOST = "{log}:lost"
DEAD_DROPPED = "{log}:dead:dropped"
BINDING = "{log}:binding"
CONVERTING = "{log}:converting"
REBUILD = "{log}:rebuild"
ARCHIVER = "{log}:archiver"
ALARM = "{log}:alarm"
REPLICATED = "{log}:replicated"
DELETED = "{log}:deleted"
ERASING = "{log}:erasing"
SUSPENDED = "{suspended}"
SUSPENDED_VERSION = "{suspended}:version"
COUNT_FIELDS = ("replies", "reposts", "quotes", "likes")
"""The fields of `post:{p}` that hold counts. Scripts compute them from sets in the same slot."""
HOMES = "home:{"
"""The prefix of all home caches."""
CONTENT = (
    DELETED,
    ERASING,
    SUSPENDED,
    "reserved:{",
    "user:{",
    "following:{",
    "followers:{",
    "posts:{",
    "cold:{",
    "replied:{",
    "replies:{",
    "reposts:{",
    "quotes:{",
    "reposted:{",
    "post:{",
    "likes:{",
    "liked:{",
    "lists:{",
    "list:{",
    "blocking:{",
    "blockers:{",
    "muting:{",
    "bookmarks:{",
    "notifications:{",
)
"""The prefixes of the keys that are written only by projecting events. Logins and sessions are not included, because
requests also write them."""
DERIVED = (*CONTENT, "login:{", "delivery:{", "session:{", HOMES)
"""The prefixes of the keys that a rebuild writes, and of the keys that depend on these."""
IRREPLACEABLE = ("{log}:idempotency:", "login:{", "session:{")
"""The prefixes of the keys that neither events nor the archive restore completely."""


def write_mark(key: str, token: str = "") -> str:
    """Return the key of the write mark in the slot of a key: see `{<any>}:mark` in the table of keys."""
    return f"{{{key.partition('{')[2].partition('}')[0] or key}}}:mark{token}"


def idempotency(user: int | str, key: str) -> str:
    """Return the key of the record of one idempotent append."""
    return f"{{log}}:idempotency:{user}:{key}"


def login(login: str) -> str:
    """Return the key that holds the claim to a login, then its account. The login must be folded."""
    return f"login:{{{login}}}"


def next_secret(login: str, nonce: str) -> str:
    """Return the key of the new hash of a password change that is not projected yet."""
    return f"login:{{{login}}}:next:{nonce}"


def reserved(login_hash: str) -> str:
    """Return the key of the reservation of a deleted user's login, by its hash."""
    return f"reserved:{{{login_hash}}}"


def attempts(login: str) -> str:
    """Return the key of the failed log-ins to a login from all networks."""
    return f"attempts:{{{login}}}"


def attempts_from(login: str, network: str) -> str:
    """Return the key of the failed log-ins to a login from one network."""
    return f"attempts:{{{login}}}:{network}"


def networks(login: str) -> str:
    """Return the key of the networks that a user has logged in from."""
    return f"networks:{{{login}}}"


def rate(holder: str) -> str:
    """Return the key of a holder's rates. A holder is a viewer or an address."""
    return f"rate:{{{holder}}}"


user: KeyOf = "user:{%d}".__mod__
"""Return the key of a user's profile."""


def permission(permission: str) -> str:
    """Return the field of a profile that holds a permission."""
    return f"may:{permission}"


def sessions(user: int) -> str:
    """Return the key of a user's live sessions."""
    return f"session:{{{user}}}"


def session_details(user: int) -> str:
    """Return the key of the details of a user's live sessions."""
    return f"session:{{{user}}}:details"


def session_fields(session: str) -> list[str]:
    """Return the fields with the details of a session: times of creation and use, user agent, and password change."""
    return [f"{session}:created", f"{session}:used", f"{session}:agent", f"{session}:password"]


following: KeyOf = "following:{%d}".__mod__
"""Return the key of the versioned set of users that a user follows."""

followers: KeyOf = "followers:{%d}".__mod__
"""Return the key of the versioned set of a user's followers."""


def blocking(user: int) -> str:
    """Return the key of the versioned set of users whom a user blocks."""
    return f"blocking:{{{user}}}"


def blockers(user: int) -> str:
    """Return the key of the versioned set of users who block a user."""
    return f"blockers:{{{user}}}"


def muting(user: int) -> str:
    """Return the key of the versioned set of users whom a user mutes."""
    return f"muting:{{{user}}}"


def bookmarks(user: int) -> str:
    """Return the key of the versioned set of posts that a user has bookmarked."""
    return f"bookmarks:{{{user}}}"


def held(versioned_set: str) -> str:
    """Return the key of the held follows of a list, which do not count because of a block."""
    return f"{versioned_set}:held"


posts: KeyOf = "posts:{%d}".__mod__
"""Return the key of the versioned set of an author's hot posts."""


def gone(versioned_set: str) -> str:
    """Return the key of the tombstones of a versioned set."""
    return f"{versioned_set}:gone"


cold: KeyOf = "cold:{%d}".__mod__
"""Return the key of the count of an author's archived posts."""


def replied(author: int) -> str:
    """Return the key of the versioned set of an author's hot replies."""
    return f"replied:{{{author}}}"


def replies(post: int) -> str:
    """Return the key of the versioned set of the hot direct replies to a post."""
    return f"replies:{{{post}}}"


def reposts(post: int) -> str:
    """Return the key of the versioned set of the hot plain reposts of a post."""
    return f"reposts:{{{post}}}"


def quotes(post: int) -> str:
    """Return the key of the versioned set of the hot quotes of a post."""
    return f"quotes:{{{post}}}"


def reposted(user: int) -> str:
    """Return the key of the versioned set of the posts that a user has reposted without a text."""
    return f"reposted:{{{user}}}"


def archived_of(post_list: str) -> str:
    """Return the key of the count of a list's archived posts. The key for a timeline is `cold`."""
    return f"{post_list}:cold"


def delivery(author: int) -> str:
    """Return the key of an author's delivery mode."""
    return f"delivery:{{{author}}}"


post: KeyOf = "post:{%d}".__mod__
"""Return the key of a post's record or tombstone."""


def likes(post: int) -> str:
    """Return the key of the versioned set of users who like a post."""
    return f"likes:{{{post}}}"


def cold_likes(post: int) -> str:
    """Return the key of the count of a post's archived likes."""
    return f"likes:{{{post}}}:cold"


def liked(user: int) -> str:
    """Return the key of the versioned set of posts that a user likes."""
    return f"liked:{{{user}}}"


def lists(owner: int) -> str:
    """Return the key of the versioned set of a user's lists of users."""
    return f"lists:{{{owner}}}"


def list_names(owner: int) -> str:
    """Return the key of the names of a user's lists."""
    return f"lists:{{{owner}}}:names"


def list_members(owner: int, list_id: int) -> str:
    """Return the key of the versioned set of the members of a list."""
    return f"list:{{{owner}}}:{list_id}"


def home(viewer: int) -> str:
    """Return the key of a user's home cache."""
    return f"home:{{{viewer}}}"


def notifications(user: int) -> str:
    """Return the key of a user's list of notification groups."""
    return f"notifications:{{{user}}}"


def notifications_read(user: int) -> str:
    """Return the key of the number up to which a user has read the notifications."""
    return f"notifications:{{{user}}}:read"


USER_SETS = (following, followers, blocking, blockers, muting, bookmarks, lists, liked, reposted, posts, replied)
"""The functions that return the keys of a user's versioned sets."""
