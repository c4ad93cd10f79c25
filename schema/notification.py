"""Notifications: the viewer's feed, its entries, and the events of its subscription."""

from datetime import datetime
from typing import ClassVar

import strawberry

from executor.fields import batched
from graph.log import notification_groups as groups
from resolvers import notifications
from schema.connections import PageInfo
from schema.node import Node
from schema.post import Post
from schema.user import User
from schema.user_error import ERRORS, UserError


@strawberry.interface(
    description="A notification. It covers all likes or all reposts of one post; one reply, quote or mention; or all "
    "follows of one UTC day. When another user likes, reposts or follows, the notification moves to the top of the "
    "feed. It is left out of the feed while it has no `actors`, or if its post was deleted. Show notifications of "
    "unknown types without details."
)
class Notification(Node):
    """The values are instances of the subclasses of `graph.log.notification_groups.Notification`."""

    id: strawberry.ID = batched(
        notifications.global_ids,
        description="The global id of the notification, which does not change when it moves to the top.",
    )
    at: datetime = batched(
        notifications.times,
        description="The time of the newest action, such as a like. Undoing the action does not change the time.",
    )
    is_read: bool = strawberry.field(
        description="Whether the viewer has marked the notification as read since the newest action."
    )
    actors: list[User] = batched(
        notifications.actors,
        description="The users who followed or mentioned the viewer, or who liked, reposted, replied to or quoted the "
        "viewer's post, most recent first. Users who have undone the action are left out, and so are users whom the "
        "viewer has muted or blocked, or who have blocked the viewer.",
    )
    actors_count: int = strawberry.field(
        description="The total number of `actors`. It is exact up to 10. Above 10, it may include users who are left "
        "out of `actors`."
    )


@strawberry.interface(description="A notification about a post.")
class PostNotification(Notification):
    """The values of the implementing types are notifications with a post."""

    post: Post | None = strawberry.field(
        description="The viewer's post that was liked or reposted, or the new post that replies to or quotes one of "
        "the viewer's posts, or mentions the viewer. Null if it has since been deleted."
    )


@strawberry.type(description="Users followed the viewer on one UTC day.")
class FollowNotification(Notification):
    """Backed by `graph.log.notification_groups.FollowNotification`."""

    record: ClassVar[type] = groups.FollowNotification


@strawberry.type(description="A user replied to one of the viewer's posts.")
class ReplyNotification(PostNotification):
    """Backed by `graph.log.notification_groups.ReplyNotification`."""

    record: ClassVar[type] = groups.ReplyNotification


@strawberry.type(description="A user mentioned the viewer in a post.")
class MentionNotification(PostNotification):
    """Backed by `graph.log.notification_groups.MentionNotification`."""

    record: ClassVar[type] = groups.MentionNotification


@strawberry.type(description="A user quoted one of the viewer's posts.")
class QuoteNotification(PostNotification):
    """Backed by `graph.log.notification_groups.QuoteNotification`."""

    record: ClassVar[type] = groups.QuoteNotification


@strawberry.type(description="Users reposted one of the viewer's posts.")
class RepostNotification(PostNotification):
    """Backed by `graph.log.notification_groups.RepostNotification`."""

    record: ClassVar[type] = groups.RepostNotification


@strawberry.type(description="Users liked one of the viewer's posts.")
class LikeNotification(PostNotification):
    """Backed by `graph.log.notification_groups.LikeNotification`."""

    record: ClassVar[type] = groups.LikeNotification


@strawberry.type(description="A notification in the feed.")
class NotificationEdge:
    """Backed by `graph.log.notification_groups.Notification`: a notification is the record of its own edge."""

    record: ClassVar[type] = groups.Notification

    cursor: str = batched(
        notifications.cursors,
        description="The notification's cursor, for `after` and `before`, and for `markNotificationsRead`. It changes "
        "when the notification moves to the top.",
    )
    node: Notification = batched(notifications.edge_nodes, description="The notification.")


@strawberry.type(description="A page of notifications, newest first.")
class NotificationConnection:
    """Backed by `resolvers.notifications.NotificationPage`."""

    record: ClassVar[type] = notifications.NotificationPage

    edges: list[NotificationEdge] = strawberry.field(description="The page's notifications, with cursors.")
    nodes: list[Notification] = strawberry.field(description="The page's notifications, without cursors.")
    page_info: PageInfo = strawberry.field(
        description="Whether there are more pages, and the cursors for requesting them."
    )


@strawberry.type(description="The viewer's newest notifications, at most 1,000.")
class NotificationFeed(Node):
    """Backed by `graph.log.notification_groups.NotificationFeed`."""

    record: ClassVar[type] = groups.NotificationFeed

    id: strawberry.ID = batched(notifications.feed_ids, description="The global id of the viewer's notifications.")
    unread_count: int = batched(
        notifications.unread_counts,
        description="The number of unread notifications, at most 100.",
    )
    has_more_unread: bool = batched(
        notifications.have_more_unread, description="Whether there are more than 100 unread notifications."
    )
    live_cursor: str | None = batched(
        notifications.live_cursors,
        description="Pass this cursor as `after` to the `notifications` subscription to receive every change since the "
        "page in `entries` was read. Select it with the same arguments as `entries`. Null if `after` or `before` is "
        "given; in that case, keep the cursor that you have, which is the `cursor` of the last event or the "
        "`liveCursor` of the first page. A normalised client cache stores only one value for all lists with equal "
        "arguments.",
    )
    entries: NotificationConnection | None = batched(
        notifications.entries,
        description="A page of the notifications, newest first. Requires `first` or `last`. A page has fewer entries "
        "than requested only if there are no more. Null if the page cannot be read; `errors` gives the reason.",
    )


@strawberry.type(description="The result of `markNotificationsRead`.")
class MarkNotificationsReadPayload:
    """Backed by `resolvers.notifications.MarkNotificationsReadPayload`."""

    record: ClassVar[type] = notifications.MarkNotificationsReadPayload

    notifications: NotificationFeed | None = strawberry.field(
        description="The viewer's notifications after the change. Null on failure."
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)
