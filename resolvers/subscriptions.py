"""Subscriptions: the live events of the viewer's home timeline."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Annotated

import strawberry

from graph.events import AuthorAdded, AuthorRemoved, HomeEvent, PostAdded, PostRemoved
from graph.model import Post, User
from graph.paging import CursorKind, decode_cursor, encode_cursor
from resolvers import ids
from resolvers.context import Context


async def home_timeline(
    context: Context,
    *,
    after: Annotated[
        str | None,
        strawberry.argument(
            description="Resume after this cursor: a page's `liveCursor` or the last event's `cursor`. "
            "From now on if left out."
        ),
    ] = None,
) -> AsyncGenerator[HomeEvent, None]:
    """Yield the events of the viewer's home timeline in log order: first what was missed, then live.

    Raises Unauthenticated, BadPaging for a broken or foreign cursor, and SessionOver once the viewer has
    logged out.
    """
    viewer = context.require_viewer()
    number = None if after is None else decode_cursor(CursorKind.LOG, after)
    async with aclosing(context.graph.feed.home(viewer.user, number, viewer.session)) as events:
        async for event in events:
            yield event


def cursors(events: Sequence[HomeEvent], context: Context) -> list[str]:
    """Give the cursors that a client resumes from after events."""
    return [encode_cursor(CursorKind.LOG, event.number) for event in events]


def added_posts(events: Sequence[PostAdded], context: Context) -> list[Post]:
    """Give the posts that were added, each standing for its edge."""
    return [event.post for event in events]


def removed_post_ids(events: Sequence[PostRemoved], context: Context) -> list[str]:
    """Give the global ids of the posts that were deleted."""
    return [ids.encode(ids.Kind.POST, event.post) for event in events]


def removed_author_ids(events: Sequence[PostRemoved], context: Context) -> list[str]:
    """Give the global ids of the deleted posts' authors."""
    return [ids.encode(ids.Kind.USER, event.author) for event in events]


async def event_users(events: Sequence[AuthorAdded | AuthorRemoved], context: Context) -> list[User | None]:
    """Give the authors whom the viewer followed or unfollowed. One round trip."""
    return await context.loaders.users.load_many(event.user for event in events)
