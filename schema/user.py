"""User accounts."""

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


@strawberry.type(description="A user account.")
class User(Node):
    """Backed by `graph.model.User`."""

    record: ClassVar[type] = model.User

    id: strawberry.ID = batched(
        users.global_ids, independent=True, needs_only_reference=True, description="The global id of the user."
    )
    login: str = strawberry.field(description="The unique handle, in lower case. It never changes.")
    name: str = strawberry.field(description="The display name.")
    bio: str = strawberry.field(
        description="The user's description of themselves, up to 300 characters. It may be empty."
    )
    avatar_url: str | None = batched(
        users.avatar_urls,
        independent=True,
        description="The `https` URL of the user's picture, up to 500 characters. Null if the user has none. Fanline "
        "stores no files: the picture is on another server that the operator allows, and that server can see who loads "
        "the picture.",
    )
    website_url: str | None = strawberry.field(
        description="The `https` URL of the user's website, up to 500 characters. Null if the user has none."
    )
    joined_at: datetime = batched(
        users.joining_times, independent=True, needs_only_reference=True, description="When the user signed up."
    )
    followers_count: int = batched(
        users.followers_counts,
        independent=True,
        needs_only_reference=True,
        description="The exact number of followers.",
    )
    following_count: int = batched(
        users.following_counts,
        independent=True,
        needs_only_reference=True,
        description="The exact number of followed users.",
    )
    posts_count: int = batched(
        users.posts_counts,
        independent=True,
        needs_only_reference=True,
        description="The exact number of entries in the user's timeline: reposts and posts, including quotes and the "
        "replies that continue the user's own threads.",
    )
    relationship: Relationship | None = batched(
        relationships.to_viewer,
        together=relationships.to_viewers,
        needs_only_reference=True,
        description="The relationship between the viewer and this user. Null for anonymous requests.",
    )
    followers: FollowConnection | None = batched(
        users.followers,
        needs_only_reference=True,
        description="The followers, most recent first. Requires `first` or `last`. Null if the page cannot be read; "
        "`errors` gives the reason.",
    )
    following: FollowConnection | None = batched(
        users.following,
        needs_only_reference=True,
        description="The followed users, most recent follow first. Requires `first` or `last`. Null if the page cannot "
        "be read; `errors` gives the reason.",
    )
    followers_you_know: FollowConnection | None = batched(
        users.followers_you_know,
        needs_only_reference=True,
        description="The user's followers whom the viewer also follows, most recent first. Requires `first` or "
        "`last`. Null for anonymous requests, or if the page cannot be read; `errors` gives the reason.",
    )
    timeline: Timeline = batched(
        timelines.user_timelines,
        needs_only_reference=True,
        description="The user's own posts and reposts. A reply is included only if the user wrote both the post that "
        "it replies to and the first post of the thread.",
    )
    replies_timeline: Timeline = batched(
        timelines.reply_timelines, needs_only_reference=True, description="All of the user's replies."
    )
