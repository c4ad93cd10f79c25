"""Anything by its global id, for clients that refetch what their cache holds."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias

import strawberry

from graph.model import Post, Relationship, Timeline, TimelineKind, User
from resolvers import ids
from resolvers.context import Context
from resolvers.errors import BadInput

MAX_NODES = 100
PEOPLE = (ids.Kind.USER, ids.Kind.USER_TIMELINE, ids.Kind.RELATIONSHIP)

Found: TypeAlias = User | Post | Timeline | Relationship | None


async def node(
    context: Context,
    *,
    id: Annotated[strawberry.ID, strawberry.argument(description="The global id to look up.")],
) -> Found:
    """Find what an id stands for; None if there is no such thing, or none that concerns the viewer.

    One round trip. Raises BadInput for a malformed id.
    """
    [found] = await find(context, [ids.decode(id)])
    if isinstance(found, Exception):
        raise found
    return found


async def nodes(
    context: Context,
    *,
    keys: Annotated[
        list[strawberry.ID],
        strawberry.argument(name="ids", description="The global ids to look up, at most 100."),
    ],
) -> Sequence[Found | Exception]:
    """Find what many ids stand for, in their order; a malformed one fails alone.

    One round trip. Raises BadInput for more than 100.
    """
    if len(keys) > MAX_NODES:
        raise BadInput(f"'ids' takes at most {MAX_NODES} ids, not {len(keys)}.")
    decoded = [decode_or_refuse(key) for key in keys]
    found = iter(await find(context, [each for each in decoded if isinstance(each, ids.GlobalId)]))
    return [next(found) if isinstance(each, ids.GlobalId) else each for each in decoded]


def decode_or_refuse(text: str) -> ids.GlobalId | BadInput:
    """Decode an id, with a malformed one's error as a value."""
    try:
        return ids.decode(text)
    except BadInput as error:
        return error


async def find(context: Context, keys: Sequence[ids.GlobalId]) -> list[Found | Exception]:
    """Find what decoded ids stand for, as far as it concerns the viewer; what cannot be told fails alone."""
    known = [key.numbers[-1] for key in keys if key.kind in PEOPLE]
    posts = [key.numbers[0] for key in keys if key.kind is ids.Kind.POST]
    related = [key.numbers[1] for key in keys if _relates(context, key)]
    loaders = context.loaders
    begun: list[Awaitable[list[Any]]] = [loaders.users.load_many(known), loaders.posts.load_many(posts)]
    if related:
        begun.append(loaders.relationships.load_many(related))
    users, found, *rest = await asyncio.gather(*begun)
    relations: dict[int, Relationship] = dict(zip(related, rest[0], strict=True)) if rest else {}
    shown = dict(zip(known, users, strict=True)), dict(zip(posts, found, strict=True))
    return [_shown(context, key, *shown, relations) for key in keys]


def _shown(
    context: Context,
    key: ids.GlobalId,
    users: Mapping[int, User | None],
    posts: Mapping[int, Post | None],
    relationships: Mapping[int, Relationship],
) -> Found:
    match key.kind, key.numbers:
        case ids.Kind.USER, (user,):
            return users[user]
        case ids.Kind.POST, (post,):
            return posts[post]
        case ids.Kind.USER_TIMELINE, (owner,):
            return None if users[owner] is None else Timeline(owner, TimelineKind.USER)
        case ids.Kind.HOME_TIMELINE, (owner,) if owner == context.viewer_id:
            return Timeline(owner, TimelineKind.HOME)
        case ids.Kind.RELATIONSHIP, (_, subject) if _relates(context, key):
            return None if users[subject] is None else relationships[subject]
        case _:
            return None


def _relates(context: Context, key: ids.GlobalId) -> bool:
    return key.kind is ids.Kind.RELATIONSHIP and key.numbers[0] == context.viewer_id
