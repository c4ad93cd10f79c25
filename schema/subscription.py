"""The root of subscriptions, and their events."""

from datetime import datetime
from typing import ClassVar

import strawberry

from executor.fields import OfRecord, batched, live
from graph.feed import updates as events
from resolvers import subscriptions
from resolvers.enums import GapReason
from schema.connections import PostEdge
from schema.post import Post
from schema.user import User


@strawberry.interface(description="Something that happened to a home timeline.")
class TimelineEvent(OfRecord):
    """Its types' values are events of `graph.feed.updates`."""

    cursor: str = batched(
        subscriptions.cursors,
        description="Where to resume: a new subscription with this cursor goes on right after the event.",
    )
    at: datetime = strawberry.field(description="When it happened.")


@strawberry.interface(description="Something that happened anywhere, as far as a filter lets it pass.")
class StreamEvent(OfRecord):
    """Its types' values are events of `graph.feed.updates`."""

    cursor: str = batched(
        subscriptions.cursors,
        description="Where to resume: a new subscription with this cursor goes on right after the event.",
    )
    at: datetime = strawberry.field(description="When it happened.")


@strawberry.type(description="Somebody in the home timeline published a post.")
class PostAdded(TimelineEvent):
    """Values are `graph.feed.updates.PostAdded`."""

    record: ClassVar[type] = events.PostAdded

    edge: PostEdge = batched(subscriptions.posts, description="The post as an edge, to put on top.")


@strawberry.type(description="A post was deleted: drop it.")
class PostRemoved(TimelineEvent):
    """Values are `graph.feed.updates.PostRemoved`."""

    record: ClassVar[type] = events.PostRemoved

    post_id: strawberry.ID = batched(subscriptions.post_ids, description="The deleted post's global id.")
    author_id: strawberry.ID = batched(subscriptions.author_ids, description="The global id of the post's author.")


@strawberry.type(
    description="The viewer followed somebody, whose older posts are now in the home timeline too: refetch it."
)
class AuthorAdded(TimelineEvent):
    """Values are `graph.feed.updates.AuthorAdded`."""

    record: ClassVar[type] = events.AuthorAdded

    user: User = batched(subscriptions.users, description="Whom the viewer follows now.")


@strawberry.type(description="The viewer follows somebody no longer: drop the person's posts.")
class AuthorRemoved(TimelineEvent):
    """Values are `graph.feed.updates.AuthorRemoved`."""

    record: ClassVar[type] = events.AuthorRemoved

    user: User = batched(subscriptions.users, description="Whom the viewer follows no longer.")


@strawberry.type(description="Somebody published a post.")
class PostPublished(StreamEvent):
    """Values are `graph.feed.updates.PostPublished`."""

    record: ClassVar[type] = events.PostPublished

    post: Post = batched(subscriptions.posts, description="The post.")


@strawberry.type(description="Somebody deleted a post of theirs: drop it. Told to whom the post itself would be told.")
class PostDeleted(StreamEvent):
    """Values are `graph.feed.updates.PostDeleted`."""

    record: ClassVar[type] = events.PostDeleted

    post_id: strawberry.ID = batched(subscriptions.post_ids, description="The deleted post's global id.")
    author_id: strawberry.ID = batched(subscriptions.author_ids, description="The global id of the post's author.")


@strawberry.type(description="Somebody followed somebody.")
class UserFollowed(StreamEvent):
    """Values are `graph.feed.updates.UserFollowed`."""

    record: ClassVar[type] = events.UserFollowed

    follower: User = batched(subscriptions.followers, description="Who followed.")
    followee: User = batched(subscriptions.followees, description="Who was followed.")


@strawberry.type(description="Somebody stopped following somebody.")
class UserUnfollowed(StreamEvent):
    """Values are `graph.feed.updates.UserUnfollowed`."""

    record: ClassVar[type] = events.UserUnfollowed

    follower: User = batched(subscriptions.followers, description="Who follows no longer.")
    followee: User = batched(subscriptions.followees, description="Who was followed until now.")


@strawberry.type(
    description="Everything up to here has been told. Comes at once on subscribing, and whenever it was quiet for a "
    "while."
)
class Checkpoint(TimelineEvent, StreamEvent):
    """Values are `graph.feed.updates.Checkpoint`."""

    record: ClassVar[type] = events.Checkpoint


@strawberry.type(description="Events are missing before this one: refetch what must be complete.")
class Gap(TimelineEvent, StreamEvent):
    """Values are `graph.feed.updates.Gap`."""

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
    events: StreamEvent = live(
        subscriptions.events,
        description="What happens anywhere, as far as the filter lets it pass: every event once, in the order of the "
        "log, nothing missed without a `Gap`. Posts that are deleted by the time they are told are left out.",
    )
