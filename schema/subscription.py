"""The subscription root, and the events of subscriptions."""

from datetime import datetime
from typing import Any, ClassVar

import strawberry

from executor.fields import OfRecord, batched, live
from graph.feed import updates
from resolvers import subscriptions
from resolvers.enums import GapReason
from schema.connections import PostEdge
from schema.notification import NotificationEdge, NotificationFeed
from schema.post import Post
from schema.repost import Repost
from schema.timeline import TimelineEdge
from schema.user import User


def event_cursor() -> Any:
    """Declare the field `cursor` of an event."""
    return batched(
        subscriptions.cursors,
        independent=True,
        description="The cursor of the event. Pass it as `after` to resume after the event.",
    )


def event_time() -> Any:
    """Declare the field `at` of an event."""
    return strawberry.field(description="The time of the event.")


@strawberry.interface(description="An event of a timeline.")
class TimelineEvent(OfRecord):
    """The values are those of `HomeUpdate` and `TimelineUpdate` in `graph.feed.updates`."""

    cursor: str = event_cursor()
    at: datetime = event_time()


@strawberry.interface(description="An event of a filtered stream.")
class StreamEvent(OfRecord):
    """The values are those of `FilteredUpdate` in `graph.feed.updates`."""

    cursor: str = event_cursor()
    at: datetime = event_time()


@strawberry.interface(description="An event of a thread.")
class ThreadEvent(OfRecord):
    """The values are the updates of threads in `graph.feed.updates`."""

    cursor: str = event_cursor()
    at: datetime = event_time()


@strawberry.interface(description="An event of the viewer's notifications.")
class NotificationEvent(OfRecord):
    """The values are the updates of notifications in `graph.feed.updates`."""

    cursor: str = event_cursor()
    at: datetime = event_time()


EDGE = (
    "The edge of the new entry. Insert it before the first edge with a smaller `cursor`: from `homeTimeline` into the "
    "home timeline, from `timeline` into that timeline, and from `events` only into timelines to which the entry "
    "belongs."
)


@strawberry.type(description="A user published a post.")
class PostAdded(TimelineEvent, StreamEvent):
    """The values are instances of `graph.feed.updates.PostAdded`."""

    record: ClassVar[type] = updates.PostAdded

    post: Post = batched(subscriptions.items, independent=True, description="The post.")
    timeline_edge: TimelineEdge = batched(subscriptions.items, independent=True, description=EDGE)


@strawberry.type(description="A user reposted a post.")
class RepostAdded(TimelineEvent, StreamEvent):
    """The values are instances of `graph.feed.updates.RepostAdded`."""

    record: ClassVar[type] = updates.RepostAdded

    repost: Repost = batched(subscriptions.items, independent=True, description="The repost.")
    timeline_edge: TimelineEdge = batched(subscriptions.items, independent=True, description=EDGE)


@strawberry.type(
    description="A post was deleted. Remove the post and its reposts from caches and lists. Timeline streams send "
    "this event only if the author's posts are in the timeline; otherwise, they send `RepostRemoved` for the reposts "
    "of the post. `thread` also sends it for the post of the thread. `events` sends it to every subscriber whose "
    "filter matched the post, and sometimes to others."
)
class PostRemoved(TimelineEvent, StreamEvent, ThreadEvent):
    """The values are instances of `graph.feed.updates.PostRemoved`."""

    record: ClassVar[type] = updates.PostRemoved

    post_id: strawberry.ID = batched(
        subscriptions.post_ids, independent=True, description="The deleted post's global id."
    )
    author_id: strawberry.ID = batched(
        subscriptions.author_ids, independent=True, description="The global id of the post's author."
    )


@strawberry.type(description="A repost was undone, or its post was deleted. Remove the repost from caches and lists.")
class RepostRemoved(TimelineEvent, StreamEvent):
    """The values are instances of `graph.feed.updates.RepostRemoved`."""

    record: ClassVar[type] = updates.RepostRemoved

    repost_id: strawberry.ID = batched(
        subscriptions.repost_ids, independent=True, description="The repost's global id."
    )
    author_id: strawberry.ID = batched(
        subscriptions.author_ids, independent=True, description="The global id of the user who had reposted."
    )


@strawberry.type(
    description="A user's earlier posts were added to the timeline, or the user's earlier replies to the thread, "
    "because the viewer followed, unmuted or unblocked the user, or the user unblocked the viewer. Also sent when the "
    "suspension of any user is lifted. Fetch the first page, then subscribe again from its `liveCursor`."
)
class AuthorAdded(TimelineEvent, ThreadEvent):
    """The values are instances of `graph.feed.updates.AuthorAdded`."""

    record: ClassVar[type] = updates.AuthorAdded

    user_id: strawberry.ID = batched(subscriptions.user_ids, independent=True, description="The global id of the user.")
    user: User | None = batched(
        subscriptions.users, independent=True, description="The user. Null if the user has since been suspended."
    )


@strawberry.type(description="The viewer unfollowed a user. Remove this user's posts and reposts from the timeline.")
class AuthorRemoved(TimelineEvent):
    """The values are instances of `graph.feed.updates.AuthorRemoved`."""

    record: ClassVar[type] = updates.AuthorRemoved

    user_id: strawberry.ID = batched(subscriptions.user_ids, independent=True, description="The global id of the user.")
    user: User | None = batched(
        subscriptions.users, independent=True, description="The user. Null if the user has since been suspended."
    )


@strawberry.type(
    description="The viewer muted a user, one of the two blocked the other, or the user was suspended or deleted. "
    "Remove this user's posts and reposts, and reposts of this user's posts, from the timeline, and the user's replies "
    "from a thread. Mutes affect only home timelines and lists."
)
class AuthorHidden(TimelineEvent, ThreadEvent):
    """The values are instances of `graph.feed.updates.AuthorHidden`."""

    record: ClassVar[type] = updates.AuthorHidden

    user_id: strawberry.ID = batched(subscriptions.user_ids, independent=True, description="The global id of the user.")


@strawberry.type(description="A direct reply to the post of the thread was published.")
class ReplyAdded(ThreadEvent):
    """The values are instances of `graph.feed.updates.ReplyAdded`."""

    record: ClassVar[type] = updates.ReplyAdded

    reply: Post = batched(subscriptions.items, independent=True, description="The reply.")
    post_edge: PostEdge = batched(
        subscriptions.items,
        independent=True,
        description="The edge to insert into `Post.replies`, before the first edge with a smaller `cursor`.",
    )


@strawberry.type(
    description="The number of likes, replies, reposts or quotes of the thread's post has changed. Sent at most "
    "once a second."
)
class PostChanged(ThreadEvent):
    """The values are instances of `graph.feed.updates.PostChanged`."""

    record: ClassVar[type] = updates.PostChanged

    post_id: strawberry.ID = batched(subscriptions.post_ids, independent=True, description="The post's global id.")
    post: Post | None = batched(
        subscriptions.changed_posts, description="The post with its new counts. Null if it is deleted or hidden."
    )


@strawberry.type(
    description="Only for the timeline of a list: the members of the list have changed, or the list was deleted. Fetch "
    "the timeline again, then subscribe again from its `liveCursor`."
)
class TimelineChanged(TimelineEvent):
    """The values are instances of `graph.feed.updates.TimelineChanged`."""

    record: ClassVar[type] = updates.TimelineChanged


@strawberry.type(description="A user followed another user.")
class UserFollowed(StreamEvent):
    """The values are instances of `graph.feed.updates.UserFollowed`."""

    record: ClassVar[type] = updates.UserFollowed

    follower: User = batched(subscriptions.followers, independent=True, description="The user who followed the other.")
    followee: User = batched(subscriptions.followees, independent=True, description="The user who was followed.")


@strawberry.type(description="A user unfollowed another user.")
class UserUnfollowed(StreamEvent):
    """The values are instances of `graph.feed.updates.UserUnfollowed`."""

    record: ClassVar[type] = updates.UserUnfollowed

    follower: User = batched(
        subscriptions.followers, independent=True, description="The user who unfollowed the other."
    )
    followee: User = batched(subscriptions.followees, independent=True, description="The user who was unfollowed.")


@strawberry.type(
    description="A notification was added, or has moved to the top. If the list holds a notification with the same "
    "`id`, replace it. At most one event per second is sent for each notification."
)
class NotificationAdded(NotificationEvent):
    """The values are instances of `graph.feed.updates.NotificationAdded`."""

    record: ClassVar[type] = updates.NotificationAdded

    edge: NotificationEdge = batched(
        subscriptions.notifications,
        description="The edge of the notification. Insert it before the first edge with a smaller `cursor`.",
    )
    feed: NotificationFeed = batched(
        subscriptions.notification_feeds, description="The viewer's notifications after the event."
    )


@strawberry.type(
    description="The viewer marked notifications as read, or notifications disappeared, reappeared or have "
    "different `actors`, for example because a user undid or repeated a like. Fetch the first page again."
)
class NotificationsChanged(NotificationEvent):
    """The values are instances of `graph.feed.updates.NotificationsChanged`."""

    record: ClassVar[type] = updates.NotificationsChanged

    feed: NotificationFeed = batched(
        subscriptions.notification_feeds, description="The viewer's notifications after the event."
    )


@strawberry.type(
    description="All events up to this cursor have been sent. A checkpoint is the first event of a subscription, and "
    "is sent periodically while there are no other events."
)
class Checkpoint(TimelineEvent, StreamEvent, ThreadEvent, NotificationEvent):
    """The values are instances of `graph.feed.updates.Checkpoint`."""

    record: ClassVar[type] = updates.Checkpoint


@strawberry.type(
    description="Events are missing at this point, or data has changed without events. Fetch all data that must be "
    "complete again, then subscribe again from its `liveCursor`."
)
class Gap(TimelineEvent, StreamEvent, ThreadEvent, NotificationEvent):
    """The values are instances of `graph.feed.updates.Gap`."""

    record: ClassVar[type] = updates.Gap

    reason: GapReason = strawberry.field(description="The reason for the gap.")


@strawberry.type(description="The root of subscriptions.")
class Subscription:
    """The root value is the event."""

    home_timeline: TimelineEvent = live(
        subscriptions.home_timeline,
        description="Stream the events of the viewer's home timeline in order, each exactly once. A `Gap` reports "
        "missing events.",
    )
    timeline: TimelineEvent = live(
        subscriptions.timeline,
        description="Stream the events of a user's timeline, a user's replies, one of the viewer's lists or the "
        "viewer's home timeline, in order and each exactly once. A `Gap` reports missing events.",
    )
    thread: ThreadEvent = live(
        subscriptions.thread,
        description="Stream the events of a thread in order: the direct replies to a post, its counts, and its "
        "deletion. Begin from the `liveCursor` of the post. Changes to counts are combined, and may be sent again "
        "after the stream is resumed. A `Gap` reports missing events.",
    )
    notifications: NotificationEvent = live(
        subscriptions.notifications_of_viewer,
        description="Stream the events of the viewer's notifications in order. A `Gap` reports missing events.",
    )
    events: StreamEvent = live(
        subscriptions.events,
        description="Stream all events that match a filter, in order and each exactly once. A `Gap` reports missing "
        "events. Posts that are deleted before they are sent are omitted.",
    )
