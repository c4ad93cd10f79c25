"""The events of the log, as frozen records. `graph.log.encoding` encodes them for the store and the archive."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, TypeAlias

from graph.log.account_events import UserDeleted, UserErased
from graph.log.body import Body
from graph.log.moderation_events import Reported, ReportsClosed, StoreRepaired, UserSuspended, UserUnsuspended
from graph.log.pair_events import Bookmarked, BookmarkRemoved, Muted, Unmuted
from graph.model import time_of

PROFILE_FIELDS = ("name", "bio", "avatar_url", "website_url")
"""The fields of a profile that its user can change."""


@dataclass(frozen=True, slots=True)
class UserCreated(Body):
    """A user signed up. `nonce` is the nonce of the claim on the login. The event holds no password hash."""

    login: str
    name: str
    nonce: str
    bio: str = ""


@dataclass(frozen=True, slots=True)
class ProfileChanged(Body):
    """A user changed the fields that are not None. An empty string removes a URL."""

    ACTOR: ClassVar[str | None] = "user"

    user: int
    name: str | None = None
    bio: str | None = None
    avatar_url: str | None = None
    website_url: str | None = None

    def changes(self) -> Iterator[tuple[str, str]]:
        """Yield the fields of the profile that change, with their new values."""
        for name in PROFILE_FIELDS:
            value = getattr(self, name)
            if value is not None:
                yield name, value


@dataclass(frozen=True, slots=True)
class PermissionGranted(Body):
    """A user was granted a permission."""

    ACTOR: ClassVar[str | None] = "user"

    user: int
    permission: str


@dataclass(frozen=True, slots=True)
class PermissionRevoked(Body):
    """A user's permission was revoked."""

    ACTOR: ClassVar[str | None] = "user"

    user: int
    permission: str


@dataclass(frozen=True, slots=True)
class PasswordChanged(Body):
    """A user changed their password. `nonce` identifies the new password hash, which the event does not hold."""

    ACTOR: ClassVar[str | None] = "user"

    user: int
    login: str
    nonce: str


@dataclass(frozen=True, slots=True)
class SessionsEnded(Body):
    """Sessions of a user were logged out."""

    ACTOR: ClassVar[str | None] = "user"

    user: int
    sessions: list[str]


@dataclass(frozen=True, slots=True)
class PostPublished(Body):
    """An author published a post, whose id is the event's number.

    `attachments` are JSON objects, `mentions` are ids of users. A reply has a parent, `reply_to`, and a `root`, the
    first post of its thread. `ancestors` are the nearest posts above the parent, oldest first. A quote has `repost_of`.
    `…_author` are the authors of these posts. A reply that is not `listed` is in no timeline but its author's replies.
    `renewed` applies to plain reposts, and is False for other posts. `request` is the id of the request if it had an
    idempotency key (`graph.log.requests`).
    """

    ACTOR: ClassVar[str | None] = "author"

    author: int
    text: str
    platform: str | None = None
    latitude: float | None = None
    longitude: float | None = None
    reply_to: int | None = None
    root: int | None = None
    repost_of: int | None = None
    mentions: tuple[int, ...] = ()
    attachments: tuple[dict[str, Any], ...] = ()
    ancestors: tuple[int, ...] = ()
    reply_to_author: int | None = None
    root_author: int | None = None
    repost_of_author: int | None = None
    listed: bool = True
    renewed: bool = False
    request: str | None = None

    @property
    def is_plain_repost(self) -> bool:
        """Whether the post is a plain repost, not a quote."""
        return self.repost_of is not None and not self.text and not self.attachments


@dataclass(frozen=True, slots=True)
class PostDeleted(Body):
    """An author deleted a post, or an operator removed it.

    `terms` is the digest of the post's text (`graph.text.terms`), for filters by keyword. It is None in an event
    that repeats an older deletion, because a digest lets a reader test guesses about a deleted text. `notified` are the
    users whom the post notified. Their streams report that the notification is gone; the archive does not keep this
    field. `by_operator` is True if an operator removed the post. The other fields are those of the post.
    """

    ACTOR: ClassVar[str | None] = "author"
    SUBJECT: ClassVar[str | None] = "post"

    author: int
    post: int
    terms: str | None = None
    reply_to: int | None = None
    root: int | None = None
    repost_of: int | None = None
    listed: bool = True
    notified: tuple[int, ...] = ()
    by_operator: bool = False

    @property
    def is_plain_repost(self) -> bool:
        """False: a plain repost ends with an Unreposted."""
        return False


@dataclass(frozen=True, slots=True)
class Reposted(Body):
    """A user reposted a post without a text. The event's number is the id of the plain repost.

    `post` is the original, and `author` the author of the original. Of all events about the same user and original, the
    one with the highest number counts. `renewed` is True if the user had reposted the post before, so that the author
    has been notified already.
    """

    ACTOR: ClassVar[str | None] = "user"
    SUBJECT: ClassVar[str | None] = "post"

    user: int
    post: int
    author: int
    renewed: bool = False


@dataclass(frozen=True, slots=True)
class Unreposted(Body):
    """A user undid a plain repost, or its original was deleted. Earlier versions let an operator remove it, too.

    `post` is the original, `author` the author of the original, and `repost` the id of the plain repost.
    """

    ACTOR: ClassVar[str | None] = "user"
    SUBJECT: ClassVar[str | None] = "post"

    user: int
    post: int
    repost: int
    author: int | None = None
    by_operator: bool = False


@dataclass(frozen=True, slots=True)
class Followed(Body):
    """`follower` followed `followee`. `renewed` is True after an earlier follow: `followee` was notified then."""

    ACTOR: ClassVar[str | None] = "follower"
    SUBJECT: ClassVar[str | None] = "followee"

    follower: int
    followee: int
    renewed: bool = False


@dataclass(frozen=True, slots=True)
class Unfollowed(Body):
    """`follower` stopped following `followee`."""

    ACTOR: ClassVar[str | None] = "follower"
    SUBJECT: ClassVar[str | None] = "followee"

    follower: int
    followee: int


@dataclass(frozen=True, slots=True)
class Liked(Body):
    """`user` liked a post by `author`. `renewed` is True if `user` had liked it before: `author` was notified then."""

    ACTOR: ClassVar[str | None] = "user"
    SUBJECT: ClassVar[str | None] = "post"

    user: int
    post: int
    author: int
    renewed: bool = False


@dataclass(frozen=True, slots=True)
class Unliked(Body):
    """`user` removed a like from a post by `author`."""

    ACTOR: ClassVar[str | None] = "user"
    SUBJECT: ClassVar[str | None] = "post"

    user: int
    post: int
    author: int


@dataclass(frozen=True, slots=True)
class Blocked(Body):
    """`blocker` began to block `blocked`, which ended the follows between the two."""

    ACTOR: ClassVar[str | None] = "blocker"
    SUBJECT: ClassVar[str | None] = "blocked"

    blocker: int
    blocked: int


@dataclass(frozen=True, slots=True)
class Unblocked(Body):
    """`blocker` stopped blocking `blocked`. No follow is restored."""

    ACTOR: ClassVar[str | None] = "blocker"
    SUBJECT: ClassVar[str | None] = "blocked"

    blocker: int
    blocked: int


@dataclass(frozen=True, slots=True)
class NotificationsRead(Body):
    """A user has read the notifications with numbers up to `upto` that existed at that time."""

    ACTOR: ClassVar[str | None] = "user"

    user: int
    upto: int


@dataclass(frozen=True, slots=True)
class ListCreated(Body):
    """A user created a list of users, whose id is the event's number. `members` are ids of users.

    `request` is the id of the request if it had an idempotency key (`graph.log.requests`).
    """

    ACTOR: ClassVar[str | None] = "owner"

    owner: int
    name: str
    members: tuple[int, ...] = ()
    request: str | None = None


@dataclass(frozen=True, slots=True)
class ListChanged(Body):
    """A user renamed a list, unless `name` is None, or changed its members. No user is both `added` and `removed`."""

    ACTOR: ClassVar[str | None] = "owner"
    SUBJECT: ClassVar[str | None] = "list_id"

    owner: int
    list_id: int
    name: str | None = None
    added: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ListDeleted(Body):
    """A user permanently deleted a list."""

    ACTOR: ClassVar[str | None] = "owner"
    SUBJECT: ClassVar[str | None] = "list_id"

    owner: int
    list_id: int


EventBody: TypeAlias = (
    UserCreated
    | ProfileChanged
    | PermissionGranted
    | PermissionRevoked
    | PasswordChanged
    | UserSuspended
    | UserUnsuspended
    | UserDeleted
    | UserErased
    | Reported
    | ReportsClosed
    | StoreRepaired
    | SessionsEnded
    | PostPublished
    | PostDeleted
    | Reposted
    | Unreposted
    | Followed
    | Unfollowed
    | Liked
    | Unliked
    | Muted
    | Unmuted
    | Bookmarked
    | BookmarkRemoved
    | Blocked
    | Unblocked
    | NotificationsRead
    | ListCreated
    | ListChanged
    | ListDeleted
)

Publication: TypeAlias = PostPublished | Reposted
"""The events that create a post (`publication_of`)."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event and its number in the log, which contains the event's time."""

    number: int
    body: EventBody

    @property
    def at(self) -> datetime:
        """The time of the event, in UTC, to the millisecond."""
        return time_of(self.number)


def publication_of(body: EventBody) -> PostPublished | None:
    """Return the publication of the post that an event creates, including a plain repost; None for other events."""
    if isinstance(body, Reposted):
        return PostPublished(body.user, "", repost_of=body.post, repost_of_author=body.author, renewed=body.renewed)
    return body if isinstance(body, PostPublished) else None


def author_of(body: EventBody) -> int | None:
    """Return the author of the post or repost that an event creates or ends; None for other events."""
    match body:
        case PostPublished(author) | PostDeleted(author) | Reposted(author) | Unreposted(author):
            return author
        case _:
            return None


def listed_author_of(body: EventBody) -> int | None:
    """Return the author of the listed post or repost that an event creates or ends; None for other events."""
    match body:
        case (
            PostPublished(author, listed=True)
            | PostDeleted(author, listed=True)
            | Reposted(author)
            | Unreposted(author)
        ):
            return author
        case _:
            return None


def publisher_of(published: PostPublished) -> Publication:
    """Return the event that a publication came from: the inverse of `publication_of`."""
    if published.repost_of is None or not published.is_plain_repost:
        return published
    return Reposted(published.author, published.repost_of, published.repost_of_author or 0, published.renewed)


def repost_ended_by(body: Unreposted) -> PostPublished:
    """Return the publication of the plain repost that an event ended."""
    return PostPublished(body.user, "", repost_of=body.post, repost_of_author=body.author)
