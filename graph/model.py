"""The frozen records of the social graph, as they leave it.

An *id* is the number of the event that created the thing, and so also the time it came to be: 41 bits of
milliseconds since 2020 and 12 bits of sequence (`graph.log.numbers`).

The records of which a page holds many are named tuples, which are twice as fast to make as frozen dataclasses.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, StrEnum
from functools import partial
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
EPOCH_MS = int(EPOCH.timestamp() * 1000)
SEQUENCE_BITS = 12
MAX_NUMBER = 2**53 - 1


def time_of(number: int) -> datetime:
    """Tell when an event was appended: the time inside its number, in UTC, to the millisecond."""
    return datetime.fromtimestamp(((number >> SEQUENCE_BITS) + EPOCH_MS) / 1000, UTC)


def number_at(time: datetime) -> int:
    """Give the lowest number that an event of this time can have."""
    return ((time - EPOCH) // timedelta(milliseconds=1)) << SEQUENCE_BITS


class User(NamedTuple):
    """A person, as shown to others."""

    id: int
    login: str
    name: str
    bio: str = ""


class Permission(StrEnum):
    """What not everybody may do; the names are part of the log and of the command line."""

    FIREHOSE = "firehose"
    """Subscribe to the public events of everybody at once."""


@dataclass(frozen=True, slots=True)
class Location:
    """A point on the globe, in degrees."""

    latitude: float
    longitude: float


class Post(NamedTuple):
    """A published post. `author` is the author's id."""

    id: int
    author: int
    text: str
    platform: str | None = None
    location: Location | None = None


class Follow(NamedTuple):
    """One entry of a followers or following list: the other person's id and the number of the Followed event."""

    user: int
    number: int


class FollowOutcome(Enum):
    """What a follow or unfollow did for one id; the names are part of the GraphQL contract."""

    FOLLOWED = "FOLLOWED"
    ALREADY_FOLLOWING = "ALREADY_FOLLOWING"
    UNFOLLOWED = "UNFOLLOWED"
    NOT_FOLLOWING = "NOT_FOLLOWING"
    NOT_FOUND = "NOT_FOUND"
    SELF = "SELF"
    LIMIT_REACHED = "LIMIT_REACHED"


class RelationshipState(Enum):
    """How a viewer and a subject stand to each other, seen from the viewer."""

    SELF = "SELF"
    NONE = "NONE"
    FOLLOWING = "FOLLOWING"
    FOLLOWED_BY = "FOLLOWED_BY"
    MUTUAL = "MUTUAL"


STATES = {
    (False, False): RelationshipState.NONE,
    (True, False): RelationshipState.FOLLOWING,
    (False, True): RelationshipState.FOLLOWED_BY,
    (True, True): RelationshipState.MUTUAL,
}


class Relationship(NamedTuple):
    """How `viewer` and `subject` (ids) stand to each other: derived from the viewer's own sets, never stored.

    The two numbers are those of the Followed events, or None where nobody follows.
    """

    viewer: int
    subject: int
    following_number: int | None = None
    followed_by_number: int | None = None

    @property
    def state(self) -> RelationshipState:
        """The relationship in one word."""
        if self.viewer == self.subject:
            return RelationshipState.SELF
        return STATES[self.following_number is not None, self.followed_by_number is not None]

    @property
    def following(self) -> bool:
        """Whether the viewer follows the subject."""
        return self.following_number is not None

    @property
    def followed_by(self) -> bool:
        """Whether the subject follows the viewer."""
        return self.followed_by_number is not None

    @property
    def following_since(self) -> datetime | None:
        """Since when the viewer follows the subject."""
        return None if self.following_number is None else time_of(self.following_number)

    @property
    def followed_by_since(self) -> datetime | None:
        """Since when the subject follows the viewer."""
        return None if self.followed_by_number is None else time_of(self.followed_by_number)


class TimelineKind(Enum):
    """Whose posts a timeline shows: the owner's and those of everyone the owner follows, or the owner's alone."""

    HOME = "HOME"
    USER = "USER"


@dataclass(frozen=True, slots=True)
class Timeline:
    """The name of a timeline: its owner's id and its kind. The posts are read page by page (`graph.timelines`)."""

    owner: int
    kind: TimelineKind


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some consecutive entries of a list, newest first, and whether the list goes on at either end."""

    items: tuple[T, ...]
    has_next: bool
    has_previous: bool


@dataclass(frozen=True, slots=True)
class Session:
    """A log-in that has not ended: its id is in the token, its record in the store makes it revocable."""

    id: str
    user: int
    expires_at: datetime


new_user: Callable[[tuple[int, str, str, str]], User] = partial(tuple.__new__, User)
new_post: Callable[[tuple[int, int, str, str | None, Location | None]], Post] = partial(tuple.__new__, Post)
new_follow: Callable[[tuple[int, int]], Follow] = partial(tuple.__new__, Follow)
new_relationship: Callable[[tuple[int, int, int | None, int | None]], Relationship] = partial(
    tuple.__new__,
    Relationship,
)
"""Make the records of which pages hold many out of all their fields, without a call of Python for each."""
