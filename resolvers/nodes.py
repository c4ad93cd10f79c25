"""Anything by its global id, for clients that refetch what their cache holds."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, TypeAlias

import strawberry

from graph.model import Post, Relationship, Timeline, TimelineKind, User
from resolvers import ids
from resolvers.context import Context
from resolvers.errors import BadInput

MAX_NODES = 100

Found: TypeAlias = User | Post | Timeline | Relationship | None


async def node(
    context: Context,
    *,
    id: Annotated[strawberry.ID, strawberry.argument(description="The global id to look up.")],
) -> Found:
    """Find what an id stands for; None if there is no such thing, or none that concerns the viewer.

    At most two round trips. Raises BadInput for a malformed id.
    """
    return await find(context, ids.decode(id))


async def nodes(
    context: Context,
    *,
    keys: Annotated[
        list[strawberry.ID],
        strawberry.argument(name="ids", description="The global ids to look up, at most 100."),
    ],
) -> Sequence[Found | BadInput]:
    """Find what many ids stand for, in their order; a malformed one fails alone.

    At most two round trips. Raises BadInput for more than 100.
    """
    if len(keys) > MAX_NODES:
        raise BadInput(f"'ids' takes at most {MAX_NODES} ids, not {len(keys)}.")
    return await asyncio.gather(*(find_or_refuse(context, key) for key in keys))


async def find_or_refuse(context: Context, text: str) -> Found | BadInput:
    """Find what an id stands for, with a malformed id's error as a value."""
    try:
        return await find(context, ids.decode(text))
    except BadInput as error:
        return error


async def find(context: Context, key: ids.GlobalId) -> Found:
    """Find what a decoded id stands for, if it concerns the viewer."""
    match key.kind, key.numbers:
        case ids.Kind.USER, (user,):
            return await context.loaders.users.load(user)
        case ids.Kind.POST, (post,):
            return await context.loaders.posts.load(post)
        case ids.Kind.USER_TIMELINE, (owner,):
            known = await context.loaders.users.load(owner)
            return None if known is None else Timeline(owner, TimelineKind.USER)
        case ids.Kind.HOME_TIMELINE, (owner,) if owner == context.viewer_id:
            return Timeline(owner, TimelineKind.HOME)
        case ids.Kind.RELATIONSHIP, (viewer, subject) if viewer == context.viewer_id:
            known, relationship = await asyncio.gather(
                context.loaders.users.load(subject), context.loaders.relationships.load(subject)
            )
            return None if known is None else relationship
        case _:
            return None
