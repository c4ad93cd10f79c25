"""Relay's connections and edges, over posts and follows, newest first."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, ClassVar

import strawberry

from executor.fields import batched
from graph import model
from resolvers import connections, posts, users
from schema.post import Post

if TYPE_CHECKING:
    from schema.user import User


@strawberry.type(description="Where a page begins and ends, and whether the list goes on there.")
class PageInfo:
    """Values are `resolvers.connections.PageEnds`."""

    record: ClassVar[type] = connections.PageEnds

    has_next_page: bool = strawberry.field(
        description="Whether older entries follow. Exact when paging with `first`; with `last`, "
        "whether `before` "
        "bounds the page."
    )
    has_previous_page: bool = strawberry.field(
        description="Whether newer entries precede. Exact when paging with `last`; with `first`, "
        "whether `after` "
        "bounds the page."
    )
    start_cursor: str | None = strawberry.field(
        description="The cursor of the first edge, the newest; null if the page is empty."
    )
    end_cursor: str | None = strawberry.field(
        description="The cursor of the last edge, the oldest; null if the page is empty."
    )


@strawberry.type(description="A post at its place in a timeline.")
class PostEdge:
    """Values are `graph.model.Post`: a post stands for its edge."""

    record: ClassVar[type] = model.Post

    cursor: str = batched(
        connections.post_cursors, description="The place in the list, good in every `PostConnection`."
    )
    node: Post = batched(posts.themselves, description="The post.")


@strawberry.type(description="A page of a timeline, newest first.")
class PostConnection:
    """Values are `resolvers.connections.PostPage`."""

    record: ClassVar[type] = connections.PostPage

    edges: list[PostEdge] = strawberry.field(description="The posts of the page, each with its cursor.")
    nodes: list[Post] = strawberry.field(description="The posts of the page, for who needs no cursors.")
    page_info: PageInfo = strawberry.field(description="Where the page begins and ends.")
    live_cursor: str = strawberry.field(
        description="Subscribe with this cursor to miss nothing since the page was read. A post that "
        "the page holds "
        "may come once more: drop it by its id."
    )


@strawberry.type(description="A person in a list of followers or followings.")
class FollowEdge:
    """Values are `graph.model.Follow`."""

    record: ClassVar[type] = model.Follow

    cursor: str = batched(
        connections.follow_cursors, description="The place in the list, good in every `FollowConnection`."
    )
    node: Annotated["User", strawberry.lazy("schema.user")] = batched(
        users.follow_users,
        references=users.follow_references,
        description="The person: the follower, or the one who is followed.",
    )
    followed_at: datetime = batched(users.following_times, description="When the follow began.")


@strawberry.type(description="A page of followers or of followings, the newest follow first.")
class FollowConnection:
    """Values are `resolvers.connections.FollowPage`."""

    record: ClassVar[type] = connections.FollowPage

    edges: list[FollowEdge] = strawberry.field(
        description="The people of the page, each with a cursor and the time of the follow."
    )
    nodes: list[Annotated["User", strawberry.lazy("schema.user")]] = batched(
        users.page_users, description="The people of the page, for who needs no cursors."
    )
    page_info: PageInfo = strawberry.field(description="Where the page begins and ends.")
    total_count: int = batched(users.total_counts, description="How many people the whole list has: exact.")
