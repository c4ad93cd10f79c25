"""Relay connections and edges of posts and follows, newest first."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, ClassVar

import strawberry

from executor.fields import batched
from graph import model
from resolvers import connections, posts, users
from schema.post import Post

if TYPE_CHECKING:
    from schema.user import User


@strawberry.type(description="The cursors at the ends of a page, and whether the list continues beyond them.")
class PageInfo:
    """Backed by `resolvers.connections.PageEnds`."""

    record: ClassVar[type] = connections.PageEnds

    has_next_page: bool = strawberry.field(
        description="Whether older entries follow the page. Exact when paging with `first`. When paging with `last`, "
        "true if `before` is given."
    )
    has_previous_page: bool = strawberry.field(
        description="Whether newer entries precede the page. Exact when paging with `last`. When paging with `first`, "
        "true if `after` is given."
    )
    start_cursor: str | None = strawberry.field(
        description="The cursor to pass as `before` for newer entries: usually that of the first edge, which is the "
        "newest. It can be null only if the page is empty."
    )
    end_cursor: str | None = strawberry.field(
        description="The cursor to pass as `after` for older entries: usually that of the last edge, which is the "
        "oldest. It can be null only if the page is empty."
    )


@strawberry.type(description="A post in a list of posts.")
class PostEdge:
    """Backed by `graph.model.Post`: a post is the record of its own edge."""

    record: ClassVar[type] = model.Post

    cursor: str = batched(
        connections.post_cursors,
        independent=True,
        description=connections.POST_CURSOR,
    )
    node: Post = batched(posts.edge_nodes, independent=True, description="The post.")


@strawberry.type(description="A page of posts, newest first.")
class PostConnection:
    """Backed by `resolvers.connections.PostPage`."""

    record: ClassVar[type] = connections.PostPage

    edges: list[PostEdge] = strawberry.field(description="The page's posts, with cursors.")
    nodes: list[Post] = strawberry.field(description="The page's posts, without cursors.")
    page_info: PageInfo = strawberry.field(
        description="Whether there are more pages, and the cursors for requesting them."
    )


@strawberry.type(description="A follow in a list of followers or followed users.")
class FollowEdge:
    """Backed by `graph.model.Follow`."""

    record: ClassVar[type] = model.Follow

    cursor: str = batched(
        connections.follow_cursors,
        description="The follow's cursor, for `after` and `before`. It is valid in every `FollowConnection`.",
    )
    node: Annotated["User", strawberry.lazy("schema.user")] = batched(
        users.follow_users,
        references=users.follow_references,
        description="The follower in `User.followers` and `User.followersYouKnow`, or the followed user in "
        "`User.following`.",
    )
    followed_at: datetime = batched(users.following_times, description="When the follow began.")


@strawberry.type(description="A page of followers or followed users, newest follow first.")
class FollowConnection:
    """Backed by `resolvers.connections.FollowPage`."""

    record: ClassVar[type] = connections.FollowPage

    edges: list[FollowEdge] = strawberry.field(
        description="The page's users, with cursors and the times of the follows."
    )
    nodes: list[Annotated["User", strawberry.lazy("schema.user")]] = batched(
        users.page_users, description="The page's users, without cursors."
    )
    page_info: PageInfo = strawberry.field(
        description="Whether there are more pages, and the cursors for requesting them."
    )
    total_count: int = batched(users.total_counts, description="The exact number of users in the whole list.")
