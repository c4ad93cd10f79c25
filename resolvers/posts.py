"""Posts: look-up by id, and their authors."""

from collections.abc import Awaitable, Sequence
from typing import Annotated

import strawberry

from graph.model import Post, User
from resolvers import ids
from resolvers.context import Context
from resolvers.references import Reference, refer
from resolvers.times import Moment, moments


async def post(
    context: Context,
    *,
    id: Annotated[strawberry.ID, strawberry.argument(description="The global id of the post.")],
) -> Post | None:
    """Find a post. One round trip; raises BadInput for a malformed id."""
    found = ids.number(ids.Kind.POST, id)
    return None if found is None else await context.loaders.posts.load(found)


def global_ids(posts: Sequence[Post], context: Context) -> list[str]:
    """Give posts' global ids."""
    return ids.encode_all(ids.Kind.POST, [post.id for post in posts])


def creation_times(posts: Sequence[Post], context: Context) -> list[Moment]:
    """Tell when posts were published."""
    return moments([post.id for post in posts])


def themselves(posts: Sequence[Post], context: Context) -> Sequence[Post]:
    """Give the node of a post's edge: the post."""
    return posts


def authors(posts: Sequence[Post], context: Context) -> Awaitable[list[User | None]]:
    """Give posts' authors. One round trip."""
    return context.loaders.users.load_many([post.author for post in posts])


def author_references(posts: Sequence[Post], context: Context) -> list[Reference]:
    """Refer to posts' authors."""
    return refer([post.author for post in posts])
