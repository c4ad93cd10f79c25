"""The payloads of the mutations `repostPost` and `unrepostPost`."""

from typing import ClassVar

import strawberry

from executor.fields import batched
from resolvers import reposts
from schema.connections import PostEdge
from schema.post import Post
from schema.user_error import ERRORS, UserError


@strawberry.type(description="The result of `repostPost`.")
class RepostPostPayload:
    """Backed by `resolvers.reposts.RepostPostPayload`."""

    record: ClassVar[type] = reposts.RepostPostPayload

    repost: Post | None = strawberry.field(
        description="The viewer's repost: a post without a text, whose `repostOf` is the post. Null on failure."
    )
    repost_edge: PostEdge | None = strawberry.field(
        description="The repost as an edge. Insert it into timelines where its cursor belongs. Null on failure."
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
        description="The global id of the viewer's repost, to remove it from caches. Null on failure, or if there was "
        "none."
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)
