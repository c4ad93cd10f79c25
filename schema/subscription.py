"""The root of subscriptions, and their events."""

from datetime import datetime
from typing import ClassVar

import strawberry

from executor.fields import batched, live
from graph import events
from resolvers import subscriptions
from schema.connections import PostEdge
from schema.enums import GapReason
from schema.records import OfRecord
from schema.user import User


@strawberry.interface(description="Something that happened to a home timeline.")
class TimelineEvent(OfRecord):
    """Its types' values are events of `graph.events`."""

    cursor: str = batched(
        subscriptions.cursors,
        description="Where to resume: a new subscription with this cursor goes on right after the event.",
    )
    at: datetime = strawberry.field(description="When it happened.")


@strawberry.type(description="Somebody in the home timeline published a post.")
class PostAdded(TimelineEvent):
    """Values are `graph.events.PostAdded`."""

    record: ClassVar[type] = events.PostAdded

    edge: PostEdge = batched(subscriptions.added_posts, description="The post as an edge, to put on top.")


@strawberry.type(description="A post was deleted: drop it.")
class PostRemoved(TimelineEvent):
    """Values are `graph.events.PostRemoved`."""

    record: ClassVar[type] = events.PostRemoved

    post_id: strawberry.ID = batched(subscriptions.removed_post_ids, description="The deleted post's global id.")
    author_id: strawberry.ID = batched(
        subscriptions.removed_author_ids, description="The global id of the post's author."
    )


@strawberry.type(
    description="The viewer followed somebody, whose older posts are now in the home timeline too: refetch it."
)
class AuthorAdded(TimelineEvent):
    """Values are `graph.events.AuthorAdded`."""

    record: ClassVar[type] = events.AuthorAdded

    user: User = batched(subscriptions.event_users, description="Whom the viewer follows now.")


@strawberry.type(description="The viewer follows somebody no longer: drop the person's posts.")
class AuthorRemoved(TimelineEvent):
    """Values are `graph.events.AuthorRemoved`."""

    record: ClassVar[type] = events.AuthorRemoved

    user: User = batched(subscriptions.event_users, description="Whom the viewer follows no longer.")


@strawberry.type(
    description="Nothing happened, up to here. Comes at once on subscribing, and whenever it was quiet for a while."
)
class Checkpoint(TimelineEvent):
    """Values are `graph.events.Checkpoint`."""

    record: ClassVar[type] = events.Checkpoint


@strawberry.type(description="Events are missing before this one: refetch what must be complete.")
class Gap(TimelineEvent):
    """Values are `graph.events.Gap`."""

    record: ClassVar[type] = events.Gap

    reason: GapReason = strawberry.field(description="Why they are missing.")


@strawberry.type(description="What can be followed live.")
class Subscription:
    """Has no value of its own."""

    home_timeline: TimelineEvent = live(
        subscriptions.home_timeline,
        description="What happens to the viewer's home timeline, in the order of the log: nothing "
        "twice, nothing "
        "missed without a `Gap`.",
    )
