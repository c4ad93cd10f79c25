"""People."""

from datetime import datetime
from typing import ClassVar

import strawberry

from executor.fields import batched
from graph import model
from resolvers import relationships, timelines, users
from schema.connections import FollowConnection
from schema.node import Node
from schema.relationship import Relationship
from schema.timeline import Timeline


@strawberry.type(description="A person.")
class User(Node):
    """Values are `graph.model.User`."""

    record: ClassVar[type] = model.User

    id: strawberry.ID = batched(users.global_ids, needs_only_reference=True, description="The global id.")
    login: str = strawberry.field(description="The handle: unique, in lower case, never changes.")
    name: str = strawberry.field(description="The name to show.")
    bio: str = strawberry.field(description="A few words about oneself; may be empty.")
    joined_at: datetime = batched(
        users.joining_times, needs_only_reference=True, description="When the person signed up."
    )
    followers_count: int = batched(
        users.followers_counts, needs_only_reference=True, description="How many people follow this one: exact."
    )
    following_count: int = batched(
        users.following_counts, needs_only_reference=True, description="How many people this one follows: exact."
    )
    posts_count: int = batched(
        users.posts_counts, needs_only_reference=True, description="How many posts the person has: exact."
    )
    relationship: Relationship | None = batched(
        relationships.to_viewer,
        needs_only_reference=True,
        description="How the viewer and this person stand to each other; null if nobody is logged in.",
    )
    followers: FollowConnection | None = batched(
        users.followers,
        needs_only_reference=True,
        description="Who follows this person, the newest follower first. Give `first` or `last`.",
    )
    following: FollowConnection | None = batched(
        users.following,
        needs_only_reference=True,
        description="Whom this person follows, the newest first. Give `first` or `last`.",
    )
    timeline: Timeline = batched(
        timelines.user_timelines, needs_only_reference=True, description="The person's own posts."
    )
    home_timeline: Timeline | None = batched(
        timelines.home_timelines,
        needs_only_reference=True,
        description="The posts of this person and of everyone whom the person follows; null unless it is the viewer.",
    )
