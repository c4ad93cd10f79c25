"""The archive's record types and errors. This module does not import SQLAlchemy."""

from collections.abc import Mapping
from typing import NamedTuple

import orjson

from graph.errors import GraphError
from graph.model import Counts, Location, Post, details_of, post_or_repost
from graph.post_lists import LIST_COLUMNS, lists_of

POST = "PostPublished"
REPOST = "Reposted"
UNREPOST = "Unreposted"
POSTS = (POST, REPOST)
"""The kinds of the rows of live posts."""
DELETION = "PostDeleted"
FOLLOW = "Followed"
UNFOLLOW = "Unfollowed"
LIKE = "Liked"
UNLIKE = "Unliked"
READ = "NotificationsRead"
REDACTED = "Redacted"
"""The kind of a post's row without content: the post was deleted, its repost was undone, or the body was refused."""

ENDED_LIKE = "EndedLike"
"""The kind of the row of a like that a later like or unlike of the post by the same user has ended."""
LIKE_KINDS = (LIKE, UNLIKE, ENDED_LIKE)

REPORT = "Reported"
REPORTS_CLOSED = "ReportsClosed"
CLOSED_REPORT = "ClosedReport"
"""The kind of the row of a report that an operator has closed."""

SUSPENSION = "UserSuspended"
UNSUSPENSION = "UserUnsuspended"
USER_DELETION = "UserDeleted"
USER_ERASURE = "UserErased"
LIST_CREATION = "ListCreated"
LIST_CHANGE = "ListChanged"
MEMBERS: Mapping[str, str] = {LIST_CREATION: "members", LIST_CHANGE: "added"}
"""The name of the field that holds the users added to a list, by kind of event."""
TEXTS: Mapping[str, tuple[str, ...]] = {
    "UserCreated": ("login", "name", "nonce", "bio"),
    "ProfileChanged": ("name", "bio", "avatar_url", "website_url"),
    "PasswordChanged": ("login", "nonce"),
    LIST_CREATION: ("name", "request"),
    LIST_CHANGE: ("name",),
    REPORT: ("comment",),
    CLOSED_REPORT: ("comment",),
}
"""The fields that hold texts of the actor, by kind of row. The nonces of seeded sign-ups reveal logins, and ids of
requests are hashes of keys that clients chose.

Posts are not here, because their deletions redact them.
"""

KEPT_BY_DELETIONS = ("reply_to", "root", "repost_of", "listed", "by_operator")


class EventRow(NamedTuple):
    """An event of the log. `body` is a JSON object, or None if the content was removed or refused."""

    number: int
    kind: str
    actor: int
    subject: int | None
    body: str | None


class LikeRow(NamedTuple):
    """A like in the archive: its number, the user and the post, and the number of the event that ended it, or None."""

    number: int
    user: int
    post: int
    ended: int | None

    def was_live(self, up_to: int) -> bool:
        """Return True if this like counted as of the event with the number `up_to`."""
        return self.number <= up_to and (self.ended is None or self.ended > up_to)


class Credential(NamedTuple):
    """A user's login and password hash, and the number of the event that set the hash.

    The hash is None for a user without a password. The login of a deleted user is replaced with a hash of the login.
    """

    user: int
    login: str
    hash: str | None
    number: int


class ArchiveState(NamedTuple):
    """The identity of the archive, the identity of its store, and the archive watermark.

    `store` is None until the archive is bound. `note` describes the data that seeding loads.
    """

    id: str
    store: str | None
    watermark: int
    note: str | None


class FoundPosts(NamedTuple):
    """Live posts by id, and the archive watermark that was read before them.

    A missing post whose id is not above the watermark was deleted, or never existed.
    """

    posts: Mapping[int, Post]
    watermark: int


class ArchiveChanged(GraphError):
    """Another process has advanced the archive watermark, or the archive is bound to another store."""

    def __init__(self) -> None:
        super().__init__(
            "Another process has advanced the archive watermark, or the archive now belongs to another store. "
            "Read the state of the archive again."
        )


class ConflictingEvent(GraphError):
    """The archive holds another event under the number of an event of the log."""

    def __init__(self, number: int) -> None:
        super().__init__(
            f"Event {number} of the log differs from event {number} in the archive. The store and the archive do not "
            "belong together, or one of them is damaged; see the operations guide."
        )
        self.number = number


class EventsRefused(GraphError):
    """The archive refused at least one event or credential of a batch. Nothing was written; a retry would fail too."""

    def __init__(self, reason: object) -> None:
        super().__init__(f"The archive refused a batch of events: {reason}")


def stored(row: EventRow) -> EventRow:
    """Return the row that the archive stores for an event. Raises ValueError if the body of a post is damaged.

    The digest of the post's text is removed from a deletion, because a reader could test guesses against it. A post
    without a body is stored as redacted, so that no page has a row without content.
    """
    if row.kind in POSTS:
        if row.body is None:
            return redacted(row)
        post_of(row)  # so that a damaged body cannot break the pages that contain it
    elif row.kind == DELETION and row.body is not None:
        values = orjson.loads(row.body)
        kept = {name: values[name] for name in KEPT_BY_DELETIONS if name in values}
        return row._replace(body=orjson.dumps(kept).decode())
    return row


def list_owners(row: EventRow) -> tuple[int | None, ...]:
    """Return the values of LIST_COLUMNS for a row that `stored` has returned."""
    if row.kind not in POSTS:
        return (None,) * len(LIST_COLUMNS)
    owners = {post_list.column: owner for post_list, owner in lists_of(post_of(row))}
    return tuple([owners.get(column) for column in LIST_COLUMNS])


def redacted(row: EventRow) -> EventRow:
    """Return a post's row with the content removed, as for a deleted post."""
    return row._replace(kind=REDACTED, body=None)


def without_texts(row: EventRow) -> EventRow:
    """Return the row with empty texts, as for an erased user. A damaged body is removed."""
    fields = TEXTS.get(row.kind)
    if fields is None or row.body is None:
        return row
    try:
        values = orjson.loads(row.body)
        emptied = values | {name: "" for name in fields if values.get(name) is not None}
    except (AttributeError, TypeError, ValueError):
        return row._replace(body=None)
    return row._replace(body=orjson.dumps(emptied).decode())


def same_event(held: EventRow, row: EventRow) -> bool:
    """Return True if a row of the archive holds this event, perhaps ended, closed, or without its content."""
    if (held.actor, held.subject) != (row.actor, row.subject):
        return False
    if held.kind == REDACTED:
        return row.kind in (*POSTS, REDACTED)
    if held.kind == ENDED_LIKE:
        return row.kind in (LIKE, ENDED_LIKE)
    if held.kind == CLOSED_REPORT:
        return row.kind in (REPORT, CLOSED_REPORT)
    return held.kind == row.kind and held.body in (None, row.body, without_texts(row).body)


def post_of(row: EventRow) -> Post:
    """Return the post in a row whose kind is in `POSTS`, without counts. Raises ValueError if the body is damaged."""
    try:
        values = orjson.loads(row.body or "")
        if row.kind == REPOST:
            values = {"text": "", "repost_of": row.subject, "repost_of_author": values.get("author")}
        latitude, longitude = values.get("latitude"), values.get("longitude")
        location = None if latitude is None or longitude is None else Location(latitude, longitude)
        fields = (row.number, row.actor, values["text"], values.get("platform"), location, *Counts())
        return post_or_repost((*fields, *details_of(values)))
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"The body of post {row.number} is damaged: {error!r}") from None
