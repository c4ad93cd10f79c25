"""The resolvers of posts."""

from collections.abc import Awaitable, Sequence
from typing import Annotated

import strawberry

from graph.model import Post, Repost, User
from resolvers import ids
from resolvers.context import Context
from resolvers.references import Reference, refer
from resolvers.times import FormattedTime, format_times


async def post(
    context: Context,
    *,
    id: Annotated[strawberry.ID, strawberry.argument(description="The global id of the post.")],
) -> Post | None:
    """Return the post with a global id, or None if it does not exist or is hidden from the viewer. One round trip.

    Raises BadInput for a malformed id. The watermark for the live cursor is read first, because it must not be newer
    than the counts of the post.
    """
    await context.watermark()
    number = ids.number(ids.Kind.POST, id)
    return None if number is None else await visible_post(context, number)


async def visible_post(context: Context, number: int) -> Post | None:
    """Return a post, or None if it does not exist, is hidden or is a repost. One round trip."""
    found = await context.loaders.posts.fetch(number)
    return None if isinstance(found, Repost) else found


def global_ids(posts: Sequence[Post], context: Context) -> list[str]:
    """Return the global ids of posts."""
    return ids.encode_all(ids.Kind.POST, [post.id for post in posts])


def creation_times(posts: Sequence[Post], context: Context) -> list[FormattedTime]:
    """Return the times when posts were published."""
    return format_times([post.id for post in posts])


def edge_nodes(posts: Sequence[Post], context: Context) -> Sequence[Post]:
    """Return the nodes of edges: a post is the record of its own edge."""
    return posts


def authors(posts: Sequence[Post], context: Context) -> Awaitable[list[User | None]]:
    """Return the authors of posts. One round trip."""
    return context.loaders.unchecked_users.fetch_many([post.author for post in posts])


def author_references(posts: Sequence[Post], context: Context) -> list[Reference]:
    """Return references to the authors of posts."""
    return refer([post.author for post in posts])
