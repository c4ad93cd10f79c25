"""Reposts, their connections, and the payloads of the mutations `repostPost` and `unrepostPost`."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, ClassVar

import strawberry

from executor.fields import batched
from graph import model
from resolvers import connections, posts, reposts, threads
from schema import timeline_item
from schema.connections import PageInfo
from schema.post import Post
from schema.timeline import TimelineEdge
from schema.user_error import ERRORS, UserError

if TYPE_CHECKING:
    from schema.user import User


@strawberry.type(
    description="A user's repost of a post: it shows the post to the user's followers and adds nothing. A post that "
    "shows another post and adds text or attachments is a quote, which is a `Post`."
)
class Repost(timeline_item.TimelineItem):
    """Backed by `graph.model.Repost`."""

    record: ClassVar[type] = model.Repost

    id: strawberry.ID = batched(reposts.global_ids, independent=True, description="The global id of the repost.")
    author: Annotated["User", strawberry.lazy("schema.user")] = timeline_item.author(
        "The user who reposted, not the author of `post`."
    )
    created_at: datetime = timeline_item.created_at("When the user reposted.")
    post: Post | None = batched(
        threads.quoted_or_reposted, description="The post that was reposted. Null if it is deleted or hidden."
    )


@strawberry.type(description="A repost in the list of a post's reposts.")
class RepostEdge:
    """Backed by `graph.model.Repost`: a repost is the record of its own edge."""

    record: ClassVar[type] = model.Repost

    cursor: str = batched(connections.post_cursors, independent=True, description=connections.POST_CURSOR)
    node: Repost = batched(posts.edge_nodes, independent=True, description="The repost.")


@strawberry.type(description="A page of reposts, newest first.")
class RepostConnection:
    """Backed by `resolvers.connections.PostPage`."""

    record: ClassVar[type] = connections.PostPage

    edges: list[RepostEdge] = strawberry.field(description="The page's reposts, with cursors.")
    nodes: list[Repost] = strawberry.field(description="The page's reposts, without cursors.")
    page_info: PageInfo = strawberry.field(
        description="Whether there are more pages, and the cursors for requesting them."
    )


@strawberry.type(description="The result of `repostPost`.")
class RepostPostPayload:
    """Backed by `resolvers.reposts.RepostPostPayload`."""

    record: ClassVar[type] = reposts.RepostPostPayload

    repost: Repost | None = strawberry.field(description="The viewer's repost. Null on failure.")
    timeline_edge: TimelineEdge | None = strawberry.field(
        description="The repost as a timeline edge. Insert it before the first edge with a smaller `cursor`. Null on "
        "failure."
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `unrepostPost`.")
class UnrepostPostPayload:
    """Backed by `resolvers.reposts.UnrepostPostPayload`."""

    record: ClassVar[type] = reposts.UnrepostPostPayload

    post: Post | None = batched(
        reposts.payload_posts,
        description="The post after the change. Null on failure, or if the post has since been deleted or hidden.",
    )
    deleted_repost_id: strawberry.ID | None = strawberry.field(
        description="The global id of the viewer's repost, to remove it from caches. Null on failure, or if the viewer "
        "had not reposted the post."
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)
