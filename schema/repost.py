"""The payloads of the mutations `repost` and `unrepost`."""

from typing import ClassVar

import strawberry

from executor.fields import batched
from resolvers import reposts
from schema.connections import PostEdge
from schema.post import Post
from schema.user_error import ERRORS, UserError


@strawberry.type(description="The result of `repost`.")
class RepostPayload:
    """Backed by `resolvers.reposts.RepostPayload`."""

    record: ClassVar[type] = reposts.RepostPayload

    repost: Post | None = strawberry.field(
        description="The viewer's repost: a post without a text, whose `repostOf` is the post. Null on failure."
    )
    repost_edge: PostEdge | None = strawberry.field(
        description="The repost as an edge, to insert at the top of timelines. Null on failure."
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `unrepost`.")
class UnrepostPayload:
    """Backed by `resolvers.reposts.UnrepostPayload`."""

    record: ClassVar[type] = reposts.UnrepostPayload

    post: Post | None = batched(
        reposts.payload_posts,
        description="The post after the change. Null on failure, or if the post has since been deleted or hidden.",
    )
    deleted_post_id: strawberry.ID | None = strawberry.field(
        description="The global id of the viewer's repost, to remove it from caches. Null on failure, or if there was "
        "none."
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)
