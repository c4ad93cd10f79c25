"""The immutable records of the social graph.

The id of a user or post is the number of the event that created it. An event number consists of 41 bits for the time,
in milliseconds since 2020, and 12 bits for a sequence number (`graph.log.numbers`).

The records that fill pages are named tuples, which are built twice as fast as frozen dataclasses.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, StrEnum, auto
from functools import partial
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")

EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
EPOCH_MS = int(EPOCH.timestamp() * 1000)
SEQUENCE_BITS = 12
MAX_NUMBER = 2**53 - 1


def time_of(number: int) -> datetime:
    """Return the time in an event number, in UTC, with millisecond precision."""
    return datetime.fromtimestamp(seconds_of(number), UTC)


def seconds_of(number: int) -> float:
    """Return the time in an event number, in seconds since 1970."""
    return ((number >> SEQUENCE_BITS) + EPOCH_MS) / 1000


def number_at(time: datetime) -> int:
    """Return the lowest number that an event at this time can have."""
    return ((time - EPOCH) // timedelta(milliseconds=1)) << SEQUENCE_BITS


class User(NamedTuple):
    """A user's public profile."""

    id: int
    login: str
    name: str
    bio: str = ""
    avatar_url: str | None = None
    website_url: str | None = None


class Permission(StrEnum):
    """An action that only some users may perform. The names are part of the log and of the command line."""

    FIREHOSE = "firehose"
    """Subscribe to the events of all users at once."""


class ReportReason(StrEnum):
    """Why a user or a post was reported. The names are part of the log and of the GraphQL schema."""

    SPAM = "SPAM"
    ABUSE = "ABUSE"
    ILLEGAL = "ILLEGAL"
    OTHER = "OTHER"


@dataclass(frozen=True, slots=True)
class Location:
    """A place, in degrees."""

    latitude: float
    longitude: float


class Post(NamedTuple):
    """A post. `author` is the author's id.

    `replies`, `reposts`, `quotes` and `likes` are counts, which are the same for all viewers. The following fields have
    their default values unless the post is a reply, repost or quote, mentions users or has attachments:

    reply_to, root: the parent and the first post of the thread.
    repost_of: the quoted or reposted post.
    mentions: ids of users.
    attachments: JSON objects.
    ancestors: the nearest posts above the parent, at most 19, oldest first.
    reply_to_author, repost_of_author, root_author: the authors of these posts.
    listed: False for a reply that appears in its thread and among its author's replies, but in no other timeline.
    """

    id: int
    author: int
    text: str
    platform: str | None = None
    location: Location | None = None
    replies: int = 0
    reposts: int = 0
    quotes: int = 0
    likes: int = 0
    reply_to: int | None = None
    root: int | None = None
    repost_of: int | None = None
    mentions: tuple[int, ...] = ()
    attachments: tuple[dict[str, Any], ...] = ()
    ancestors: tuple[int, ...] = ()
    reply_to_author: int | None = None
    repost_of_author: int | None = None
    root_author: int | None = None
    listed: bool = True

    @property
    def is_plain_repost(self) -> bool:
        """Whether this is a Repost."""
        return False


class Repost(Post):
    """A plain repost, which shows the post `repost_of` and has no content of its own."""

    __slots__ = ()

    @property
    def is_plain_repost(self) -> bool:
        """Whether this is a Repost."""
        return True


class Counts(NamedTuple):
    """The numbers of replies, plain reposts, quotes and likes of a post."""

    replies: int = 0
    reposts: int = 0
    quotes: int = 0
    likes: int = 0


Details: TypeAlias = tuple[
    int | None,
    int | None,
    int | None,
    tuple[int, ...],
    tuple[dict[str, Any], ...],
    tuple[int, ...],
    int | None,
    int | None,
    int | None,
    bool,
]
NO_DETAILS: Details = (None, None, None, (), (), (), None, None, None, True)
"""The default values of the fields of a Post from `reply_to` onwards."""


def details_of(values: Mapping[str, Any]) -> Details:
    """Return the fields of a Post from `reply_to` onwards, given the JSON fields of its event."""
    return (
        values.get("reply_to"),
        values.get("root"),
        values.get("repost_of"),
        tuple(values.get("mentions", ())),
        tuple(values.get("attachments", ())),
        tuple(values.get("ancestors", ())),
        values.get("reply_to_author"),
        values.get("repost_of_author"),
        values.get("root_author"),
        values.get("listed", True),
    )


class Follow(NamedTuple):
    """One entry of a followers or following list: the other user's id and the number of the Followed event."""

    user: int
    number: int


class Like(NamedTuple):
    """An entry of a list of likes, with the number of the like.

    In a list of a post's likes, `user` is the user who likes the post. In a list of a user's likes, `user` is the id of
    the liked post.
    """

    user: int
    number: int


class LikedPost(NamedTuple):
    """A post that a user likes, and the number of the like."""

    post: Post
    number: int


class BookmarkedPost(NamedTuple):
    """A post that a user has bookmarked, and the number of the bookmark."""

    post: Post
    number: int


class UserList(NamedTuple):
    """A list of users. Only its owner can see it."""

    id: int
    owner: int
    name: str


class FollowOutcome(Enum):
    """What a follow or unfollow changed for one id. The names are part of the GraphQL schema."""

    FOLLOWED = "FOLLOWED"
    ALREADY_FOLLOWING = "ALREADY_FOLLOWING"
    UNFOLLOWED = "UNFOLLOWED"
    NOT_FOLLOWING = "NOT_FOLLOWING"


class FollowRefusal(Enum):
    """Why a follow or unfollow was refused for one id.

    `SELF` is the viewer's own id. With `LIMIT_REACHED`, none of the requested users was followed.
    """

    NOT_FOUND = auto()
    SELF = auto()
    LIMIT_REACHED = auto()
    BLOCKED = auto()


class RelationshipState(Enum):
    """The relationship between the viewer and another user, from the viewer's perspective."""

    YOU = "YOU"
    STRANGER = "STRANGER"
    FOLLOWING = "FOLLOWING"
    FOLLOWED_BY = "FOLLOWED_BY"
    MUTUAL = "MUTUAL"


STATES = {
    (False, False): RelationshipState.STRANGER,
    (True, False): RelationshipState.FOLLOWING,
    (False, True): RelationshipState.FOLLOWED_BY,
    (True, True): RelationshipState.MUTUAL,
}


class Relationship(NamedTuple):
    """The relationship between two users, `viewer` and `subject`, read from the viewer's sets.

    Each of the two numbers is that of a Followed event, or None if there is no follow. `muting` and `blocking` are True
    if the viewer mutes or blocks the subject, and `blocked_by` is True if the subject blocks the viewer.
    """

    viewer: int
    subject: int
    following_number: int | None = None
    followed_by_number: int | None = None
    muting: bool = False
    blocking: bool = False
    blocked_by: bool = False

    @property
    def state(self) -> RelationshipState:
        """The state of the relationship."""
        if self.viewer == self.subject:
            return RelationshipState.YOU
        return STATES[self.following_number is not None, self.followed_by_number is not None]

    @property
    def following(self) -> bool:
        """Whether the viewer follows the subject."""
        return self.following_number is not None

    @property
    def follow(self) -> Follow | None:
        """The entry of the viewer's list of followed users, or None."""
        return None if self.following_number is None else Follow(self.subject, self.following_number)

    @property
    def followed_by(self) -> bool:
        """Whether the subject follows the viewer."""
        return self.followed_by_number is not None

    @property
    def following_since(self) -> datetime | None:
        """When the viewer began to follow the subject, or None."""
        return None if self.following_number is None else time_of(self.following_number)

    @property
    def followed_by_since(self) -> datetime | None:
        """When the subject began to follow the viewer, or None."""
        return None if self.followed_by_number is None else time_of(self.followed_by_number)


class TimelineKind(Enum):
    """What a timeline shows.

    HOME: posts of the owner and the users that the owner follows. USER and REPLIES: the owner's posts or replies. LIST:
    posts of the members of a list. PUBLIC: posts of all users.
    """

    HOME = "HOME"
    USER = "USER"
    REPLIES = "REPLIES"
    LIST = "LIST"
    PUBLIC = "PUBLIC"


class Timeline(NamedTuple):
    """A timeline: its kind and the id of its owner, which is a user or a list.

    `graph.timelines.timelines`, `graph.timelines.list_timelines` and `graph.timelines.public_timeline` read its pages.
    The owner of the public timeline is 0, and its `watermark` is the archive watermark that was read before its pages.
    """

    owner: int
    kind: TimelineKind
    watermark: int = 0


NOTHING_RELATED: Mapping[int, Any] = MappingProxyType({})


class Page(NamedTuple, Generic[T]):
    """Consecutive entries of a list, newest first, and whether there are more at either end.

    `reached` is the number at which the next page continues, if that is not the number of the page's last entry: a page
    ends early, and may be short, if many hidden entries were scanned for it. `related` maps ids to the originals of
    plain reposts.
    """

    items: tuple[T, ...]
    has_next: bool
    has_previous: bool
    reached: int | None = None
    related: Mapping[int, T] = NOTHING_RELATED


@dataclass(frozen=True, slots=True)
class Credentials:
    """The content of an access token: the id of a session, its user, and when it expires."""

    id: str
    user: int
    expires_at: datetime


class Session(NamedTuple):
    """A live session as its user sees it. `token_id` is the id in the token, and `id` is a hash of it."""

    id: int
    token_id: str
    created_at: datetime
    last_used_at: datetime
    user_agent: str | None


new_user: Callable[[tuple[int, str, str, str, str | None, str | None]], User] = partial(tuple.__new__, User)
PostFields: TypeAlias = tuple[int, int, str, str | None, Location | None, int, int, int, int, *Details]
new_post: Callable[[PostFields], Post] = partial(tuple.__new__, Post)
new_repost: Callable[[PostFields], Repost] = partial(tuple.__new__, Repost)
new_follow: Callable[[tuple[int, int]], Follow] = partial(tuple.__new__, Follow)
new_relationship: Callable[[tuple[int, int, int | None, int | None, bool, bool, bool]], Relationship] = partial(
    tuple.__new__,
    Relationship,
)
"""These functions build a record from a tuple of its fields without running Python code for each record."""


def post_or_repost(fields: PostFields) -> Post:
    """Return the record with these fields: a Repost if it refers to a post and has no content of its own.

    Use `new_post` for posts that have none of the fields from `reply_to` onwards.
    """
    _, _, text, _, _, _, _, _, _, _, _, repost_of, _, attachments, *_ = fields
    is_repost = repost_of is not None and not text and not attachments
    return new_repost(fields) if is_repost else new_post(fields)
