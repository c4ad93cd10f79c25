"""The store's keys: the data model as a table, and the only place where a key is spelled.

`{…}` is the part that a cluster hashes: all keys of one person share a slot, and so do all keys of the log.

=============================  ==============  ==================================================================
key                            type            content
=============================  ==============  ==================================================================
`{log}`                        stream          events, one entry each, its id the event's number as `ms-sequence`
`{log}:idempotency:<user>:<key>` string, TTL     idempotency: hash of the appended events and their numbers
`{log}:watermark`                string          the watermark: every event up to this number is projected
`{log}:trimmed`                string          highest number that retention has removed from the log
`{log}:scrubbed`               string          how far deleted posts' texts have been removed from the log
`{log}:import`                 string          what an import brings into the log, and whether it is complete
`{log}:dead`                   stream          events and tasks that could not be projected, with the reason
`{log}:fanouts`                stream          tasks: post, author, and the follow numbers (low, high] to serve
`{log}:fanouts:open`           sorted set      task's entry → its post, which the watermark waits for
`{log}:archivable`             sorted set      author with posts for the archive → the post that showed it
`{log}:deleted`                sorted set      deleted post that may still have an archive row → its deletion
`{log}:rewritten`              sorted set      archived post whose record a repeated event has written again → post
`{log}:archive`                string          identity of the archive that holds this store's cold posts
`login:{<login>}`              hash            secret (argon2id), nonce, user, winner: the claim, then the account
`rate:{<holder>}`              hash, TTL       rate → the time, in microseconds, at which its bucket is full again
`attempts:{<login>}:<network>` sorted set, TTL failed log-ins from one network (a hash of it) → their time in seconds
`attempts:{<login>}`           sorted set, TTL the newest failed log-ins from all networks → their time in seconds
`networks:{<login>}`           sorted set, TTL networks that the user has logged in from → the last time, in seconds
`user:{u}`                     hash            id, login, name, bio; `<field>:at` is the number that set a field;
                                               `may:<permission>` → the number that granted it, or, negative, revoked
`session:{u}`                  hash            session id → its expiry in seconds since 1970
`following:{u}`                versioned set   whom u follows → number of the Followed event
`followers:{u}`                versioned set   who follows u → number of the Followed event
`posts:{u}`                    versioned set   post → post; member `f` → archive floor (0 at first)
`cold:{u}`                     string          how many of u's live posts are in the archive
`delivery:{u}`                 string          delivery mode: absent (push), `promoting:<post>:<token>` or `pull`
`post:{p}`                     hash            id, author, text, platform, latitude, longitude; or only `deleted`
`home:{v}`                     sorted set, TTL cache of the home timeline: post → post; `f` → floor; `r<token>` →
                                               +inf during a rebuild; `a<author>` → -1 for pulled authors
=============================  ==============  ==================================================================

A *versioned set* is a sorted set from member to the number that added it, a second one (`…:gone`) of tombstones
from member to the number that removed it, and a tombstone floor in `…:gone` under the member `f`. An element
changes only for a number above its version: its score, else its tombstone's, else the floor.
"""

LOG = "{log}"
WATERMARK = "{log}:watermark"
TRIMMED = "{log}:trimmed"
SCRUBBED = "{log}:scrubbed"
IMPORT = "{log}:import"
DEAD = "{log}:dead"
FANOUTS = "{log}:fanouts"
OPEN_FANOUTS = "{log}:fanouts:open"
ARCHIVABLE = "{log}:archivable"
DELETED = "{log}:deleted"
REWRITTEN = "{log}:rewritten"
ARCHIVE = "{log}:archive"
HOMES = "home:{*}"


def idempotency(user: int | str, key: str) -> str:
    """Name the record of one idempotent append."""
    return f"{{log}}:idempotency:{user}:{key}"


def login(login: str) -> str:
    """Name the claim and account of a folded login."""
    return f"login:{{{login}}}"


def attempts(login: str) -> str:
    """Name the failed log-ins to a login from all networks."""
    return f"attempts:{{{login}}}"


def attempts_from(login: str, network: str) -> str:
    """Name the failed log-ins to a login from one network."""
    return f"attempts:{{{login}}}:{network}"


def networks(login: str) -> str:
    """Name the networks that a user has logged in from."""
    return f"networks:{{{login}}}"


def rate(holder: str) -> str:
    """Name the rates of a holder: a viewer, or an address."""
    return f"rate:{{{holder}}}"


def user(user: int) -> str:
    """Name a person's profile."""
    return f"user:{{{user}}}"


def permission(permission: str) -> str:
    """Name the field of a profile that tells whether the person has a permission."""
    return f"may:{permission}"


def sessions(user: int) -> str:
    """Name a person's live sessions."""
    return f"session:{{{user}}}"


def following(user: int) -> str:
    """Name the versioned set of whom a person follows."""
    return f"following:{{{user}}}"


def followers(user: int) -> str:
    """Name the versioned set of a person's followers."""
    return f"followers:{{{user}}}"


def posts(author: int) -> str:
    """Name the versioned set of an author's hot posts."""
    return f"posts:{{{author}}}"


def gone(versioned_set: str) -> str:
    """Name the tombstones of a versioned set."""
    return f"{versioned_set}:gone"


def cold(author: int) -> str:
    """Name the counter of an author's archived posts."""
    return f"cold:{{{author}}}"


def delivery(author: int) -> str:
    """Name the delivery mode of an author."""
    return f"delivery:{{{author}}}"


def post(post: int) -> str:
    """Name a post's record or tombstone."""
    return f"post:{{{post}}}"


def home(viewer: int) -> str:
    """Name the cache of a person's home timeline."""
    return f"home:{{{viewer}}}"
