"""The resolvers of plain reposts: their fields, reposting, undoing, and whether the viewer has reposted posts."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Annotated

import strawberry

from graph.errors import ProblemCode
from graph.model import Post, Repost
from resolvers import ids, inputs
from resolvers.context import Context
from resolvers.payloads import Payload, load_posts, mutation, post_number


@dataclass(frozen=True, slots=True, kw_only=True)
class RepostPostPayload(Payload):
    """The record of `RepostPostPayload`."""

    repost: Repost | None = None

    @property
    def timeline_edge(self) -> Repost | None:
        """The repost, as the record of its edge in timelines."""
        return self.repost


@dataclass(frozen=True, slots=True, kw_only=True)
class UnrepostPostPayload(Payload):
    """The record of `UnrepostPostPayload`. `post` is the id of the original."""

    post: int | None = None
    deleted_repost_id: str | None = None


@mutation(RepostPostPayload, ProblemCode.NOT_FOUND, ProblemCode.TOO_MANY, ProblemCode.BLOCKED)
async def repost_post(
    context: Context,
    *,
    input: Annotated[inputs.RepostPostInput, strawberry.argument(description="The post to repost.")],
) -> RepostPostPayload:
    """Repost a post as the viewer."""
    viewer = context.require_viewer()
    post = post_number(input.post_id, "postId")
    return RepostPostPayload(repost=await context.graph.reposts.repost(context.loaders.view, viewer.user, post))


@mutation(UnrepostPostPayload, ProblemCode.NOT_FOUND)
async def unrepost_post(
    context: Context,
    *,
    input: Annotated[inputs.UnrepostPostInput, strawberry.argument(description="The post that was reposted.")],
) -> UnrepostPostPayload:
    """Undo the viewer's repost of a post."""
    viewer = context.require_viewer()
    post = post_number(input.post_id, "postId")
    deleted = await context.graph.reposts.unrepost(context.loaders.view, viewer.user, post)
    return UnrepostPostPayload(
        post=post, deleted_repost_id=None if deleted is None else ids.encode(ids.Kind.REPOST, deleted)
    )


async def payload_posts(payloads: Sequence[UnrepostPostPayload], context: Context) -> list[Post | None]:
    """Return the original after each mutation; None if it failed, or the original is gone or hidden. One round trip."""
    return await load_posts(context, [each.post for each in payloads])


def viewer_has_reposted(
    posts: Sequence[Post], context: Context
) -> Awaitable[Sequence[bool | None]] | Sequence[bool | None]:
    """Return for each post whether the viewer has reposted it; None for anonymous requests. One round trip."""
    if context.viewer is None:
        return [None] * len(posts)
    return context.loaders.viewer_reposts.fetch_many([post.id for post in posts])


def global_ids(reposts: Sequence[Repost], context: Context) -> list[str]:
    """Return the global ids of reposts."""
    return ids.encode_all(ids.Kind.REPOST, [repost.id for repost in reposts])
