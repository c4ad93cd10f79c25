"""The updates that a live stream sends, as frozen records.

The `number` of an update is a position in the log: a subscription that resumes after it misses no later update.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TypeAlias

from graph.log.events import Event, EventBody, Reposted
from graph.log.notification_groups import Group, Notification
from graph.model import Post, time_of


class GapReason(Enum):
    """Why updates are missing. The names are part of the GraphQL schema."""

    RETENTION = "RETENTION"
    SLOW_CONSUMER = "SLOW_CONSUMER"
    REPAIR = "REPAIR"


@dataclass(frozen=True, slots=True)
class Change:
    """An update that reports one event of the log. `number` is the number of the event."""

    number: int

    @property
    def at(self) -> datetime:
        """Return the time of the event."""
        return time_of(self.number)


@dataclass(frozen=True, slots=True)
class PostAdded(Change):
    """A post was added to the viewer's home timeline. `original_author` is an id, set for plain reposts only."""

    post: Post
    original_author: int | None = None


@dataclass(frozen=True, slots=True)
class PostRemoved(Change):
    """A post of the viewer's home timeline was deleted. `post` and `author` are ids."""

    post: int
    author: int


@dataclass(frozen=True, slots=True)
class AuthorAdded(Change):
    """The earlier posts of a user are in the timeline now, or no longer hidden: clients refetch. `user` is an id.

    The viewer has followed, unmuted or unblocked the user, the user has unblocked the viewer, or the user's suspension
    has ended.
    """

    user: int


@dataclass(frozen=True, slots=True)
class AuthorRemoved(Change):
    """The viewer unfollowed a user, whose posts are no longer in the timeline. `user` is an id."""

    user: int


@dataclass(frozen=True, slots=True)
class AuthorHidden(Change):
    """A user is hidden from the viewer or muted: clients drop the user's posts and reposts of them. `user` is an id."""

    user: int


@dataclass(frozen=True, slots=True)
class PostPublishedChange(Change):
    """A post that matches the filter was published. `original_author` is an id, set for plain reposts only."""

    post: Post
    original_author: int | None = None


@dataclass(frozen=True, slots=True)
class PostDeletedChange(Change):
    """A post that matched the filter, or may have matched it, was deleted. `post` and `author` are ids."""

    post: int
    author: int


@dataclass(frozen=True, slots=True)
class UserFollowed(Change):
    """A user followed another. Both fields are ids."""

    follower: int
    followee: int


@dataclass(frozen=True, slots=True)
class UserUnfollowed(Change):
    """A user unfollowed another. Both fields are ids."""

    follower: int
    followee: int


@dataclass(frozen=True, slots=True)
class Notice(Change):
    """An event adds to a group of the viewer's notifications or, if `group` is None, changes the list in another way.

    Streams of notifications combine these updates before they send any.
    """

    event: Event
    group: Group | None


@dataclass(frozen=True, slots=True)
class NotificationAdded(Change):
    """A notification of the viewer was added, or has moved to the top."""

    notification: Notification


@dataclass(frozen=True, slots=True)
class NotificationsChanged(Change):
    """Some of the viewer's notifications were marked as read, removed or changed."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """All updates up to `number` have been sent."""

    number: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Gap:
    """Updates are missing, or pages have changed without updates.

    SLOW_CONSUMER: updates after `number` were dropped; a new subscription that resumes after `number` gets them.
    RETENTION: updates up to `number` may be lost, because the log no longer holds their events.
    REPAIR: a repair has corrected pages, and no update tells what has changed.
    """

    number: int
    at: datetime
    reason: GapReason


HomeChange: TypeAlias = PostAdded | PostRemoved | AuthorAdded | AuthorRemoved | AuthorHidden
StreamChange: TypeAlias = PostPublishedChange | PostDeletedChange | UserFollowed | UserUnfollowed
HomeUpdate: TypeAlias = HomeChange | Checkpoint | Gap
StreamUpdate: TypeAlias = StreamChange | Checkpoint | Gap
NotificationChange: TypeAlias = NotificationAdded | NotificationsChanged
NotificationUpdate: TypeAlias = NotificationChange | Checkpoint | Gap


def original_author_of(body: EventBody) -> int | None:
    """Return the author of the original if the event is a plain repost, or None for other events."""
    return body.author if isinstance(body, Reposted) else None
