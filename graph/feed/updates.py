"""What a live stream tells its reader, as frozen records. `number` is the place in the log to resume from."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TypeAlias

from graph.model import Post, time_of


class GapReason(Enum):
    """Why a stream missed something; the names are part of the GraphQL contract."""

    RETENTION = "RETENTION"
    SLOW_CONSUMER = "SLOW_CONSUMER"


@dataclass(frozen=True, slots=True)
class Happened:
    """Something that an event of the log brought about, at the event's time."""

    number: int

    @property
    def at(self) -> datetime:
        """When it happened."""
        return time_of(self.number)


@dataclass(frozen=True, slots=True)
class PostAdded(Happened):
    """A post joined the viewer's home timeline."""

    post: Post


@dataclass(frozen=True, slots=True)
class PostRemoved(Happened):
    """A post of the viewer's home timeline was deleted. `post` and `author` are ids."""

    post: int
    author: int


@dataclass(frozen=True, slots=True)
class AuthorAdded(Happened):
    """The viewer followed somebody: earlier posts join the timeline, so clients refetch. `user` is the id."""

    user: int


@dataclass(frozen=True, slots=True)
class AuthorRemoved(Happened):
    """The viewer unfollowed somebody: all posts of this author leave the timeline. `user` is the id."""

    user: int


@dataclass(frozen=True, slots=True)
class PostPublished(Happened):
    """A post was published that matches the filter."""

    post: Post


@dataclass(frozen=True, slots=True)
class PostDeleted(Happened):
    """A post was deleted that matched the filter. `post` and `author` are ids."""

    post: int
    author: int


@dataclass(frozen=True, slots=True)
class UserFollowed(Happened):
    """Somebody followed somebody. Both are ids."""

    follower: int
    followee: int


@dataclass(frozen=True, slots=True)
class UserUnfollowed(Happened):
    """Somebody stopped following somebody. Both are ids."""

    follower: int
    followee: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """All that happened up to this number has been told: a fresher place to resume from."""

    number: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Gap:
    """Something after `number` was missed, and why.

    A reader that was too slow can have it by resuming from there, and is told what happens from now on. What retention
    has removed is lost: `number` is the last of it, and all that came after it follows.
    """

    number: int
    at: datetime
    reason: GapReason


HomeHappened: TypeAlias = PostAdded | PostRemoved | AuthorAdded | AuthorRemoved
StreamHappened: TypeAlias = PostPublished | PostDeleted | UserFollowed | UserUnfollowed
HomeUpdate: TypeAlias = HomeHappened | Checkpoint | Gap
StreamUpdate: TypeAlias = StreamHappened | Checkpoint | Gap
