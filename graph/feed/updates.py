"""The updates that a live stream sends, as frozen records.

The `number` of an update is a position in the log: a subscription that resumes after it misses no later update.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TypeAlias

from graph.log.events import Event, PostDeleted, Unreposted, publication_of
from graph.log.notification_groups import Group, Notification
from graph.model import Post, Repost, time_of
from graph.records import published_post


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
    """A post was published."""

    post: Post


@dataclass(frozen=True, slots=True)
class RepostAdded(Change):
    """A user reposted a post. `original_author` is an id, or 0 if unknown."""

    post: Repost
    original_author: int


@dataclass(frozen=True, slots=True)
class PostRemoved(Change):
    """A post was deleted. `post` and `author` are ids."""

    post: int
    author: int


@dataclass(frozen=True, slots=True)
class RepostRemoved(Change):
    """A plain repost was undone. `post` is the id of the repost, `author` the id of the user who made it."""

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
class TimelineChanged(Change):
    """The members of a list have changed, or the list was deleted: clients refetch its timeline."""


@dataclass(frozen=True, slots=True)
class CountsChanged(Change):
    """An event changed a count of a thread's post. Streams of threads combine these updates into `PostChanged`."""


@dataclass(frozen=True, slots=True)
class ReplyAdded(Change):
    """A direct reply to the post of a thread was published."""

    post: Post


@dataclass(frozen=True, slots=True)
class PostChanged(Change):
    """Counts of a thread's post have changed. `post` is an id.

    `number` is below the numbers of the events that changed the counts: a client that resumes after `number` gets an
    update for all of these events again.
    """

    post: int


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
    """A notification of the viewer was added or moved to the top."""

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
    RETENTION: updates up to `number` may be lost, because the log no longer holds their events. REPAIR: a repair has
    corrected pages, and no update reports what has changed.
    """

    number: int
    at: datetime
    reason: GapReason


ItemAdded: TypeAlias = PostAdded | RepostAdded
ItemRemoved: TypeAlias = PostRemoved | RepostRemoved
HomeChange: TypeAlias = ItemAdded | ItemRemoved | AuthorAdded | AuthorRemoved | AuthorHidden
FilteredChange: TypeAlias = ItemAdded | ItemRemoved | UserFollowed | UserUnfollowed
TimelineChange: TypeAlias = HomeChange | TimelineChanged
HomeUpdate: TypeAlias = HomeChange | Checkpoint | Gap
ThreadCause: TypeAlias = HomeChange | CountsChanged
"""The update of a thread that one event causes, before `PostChanged` combines the changes of counts."""
ThreadChange: TypeAlias = ReplyAdded | PostChanged | PostRemoved | AuthorAdded | AuthorHidden
ThreadUpdate: TypeAlias = ThreadChange | Checkpoint | Gap
TimelineUpdate: TypeAlias = TimelineChange | Checkpoint | Gap
FilteredUpdate: TypeAlias = FilteredChange | Checkpoint | Gap
NotificationChange: TypeAlias = NotificationAdded | NotificationsChanged
NotificationUpdate: TypeAlias = NotificationChange | Checkpoint | Gap


def item_update(event: Event) -> ItemAdded | ItemRemoved | None:
    """Return the update for an event that creates or ends a post or a plain repost; None for other events."""
    number, published = event.number, publication_of(event.body)
    if published is not None:
        added = published_post(number, published)
        if isinstance(added, Repost):
            return RepostAdded(number, added, added.repost_of_author or 0)
        return PostAdded(number, added)
    match event.body:
        case PostDeleted(author, post):
            return PostRemoved(number, post, author)
        case Unreposted(user, _, repost):
            return RepostRemoved(number, repost, user)
        case _:
            return None
