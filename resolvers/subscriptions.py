"""Subscriptions: the live events of the viewer's home timeline, and those that pass a filter."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Annotated, TypeAlias, TypeVar

import strawberry

from graph.feed import filters
from graph.feed.updates import (
    AuthorAdded,
    AuthorRemoved,
    HomeUpdate,
    PostAdded,
    PostDeleted,
    PostPublished,
    PostRemoved,
    StreamUpdate,
    UserFollowed,
    UserUnfollowed,
)
from graph.model import Post, User
from graph.paging import CursorKind, decode_cursor, encode_cursor
from resolvers import ids
from resolvers.context import Context
from resolvers.errors import BadInput
from resolvers.inputs import EventFilter

E = TypeVar("E", bound=HomeUpdate | StreamUpdate)
After: TypeAlias = Annotated[
    str | None,
    strawberry.argument(
        description="Resume after this cursor: a page's `liveCursor` or the last event's `cursor`. "
        "From now on if left out."
    ),
]


def home_timeline(context: Context, *, after: After = None) -> AsyncGenerator[HomeUpdate, None]:
    """Stream the events of the viewer's home timeline in log order: first what was missed, then live.

    Raises Unauthenticated, BadPaging for a broken or foreign cursor, and SessionOver once the viewer has
    logged out.
    """
    viewer = context.require_viewer()
    return context.graph.feed.home(viewer.user, _position(context, after), viewer.session)


def events(
    context: Context,
    *,
    filter: Annotated[EventFilter, strawberry.argument(description="Which events to stream.")],  # noqa: A002 - contract
    after: After = None,
) -> AsyncGenerator[StreamUpdate, None]:
    """Stream the events that pass a filter in log order, each once: first what was missed, then live.

    Raises BadInput and BadFilter for a filter that makes no sense, BadPaging for a cursor, NotPermitted for a firehose
    without the permission, SessionOver once the viewer has logged out, and what `Client.acquire_terms` raises if the
    viewer's filters are too large.
    """
    chosen, viewer = _checked(filter), context.viewer
    user, session = (viewer.user, viewer.session) if viewer else (None, None)
    position = _position(context, after)
    streamed = context.graph.feed.events(chosen, position, user, session, holder=context.client.holder)
    return _holding(streamed, context, chosen.terms)


def _position(context: Context, after: str | None) -> int | None:
    """Tell which number to resume after: what a reconnecting client says is fresher than its document."""
    if context.resume_after:
        return decode_cursor(CursorKind.LOG, context.resume_after, "Last-Event-ID")
    return None if after is None else decode_cursor(CursorKind.LOG, after)


async def _holding(bodies: AsyncGenerator[E, None], context: Context, terms: int) -> AsyncGenerator[E, None]:
    """Keep room for a filter of so many terms until the stream ends. Raises what `Client.acquire_terms` does."""
    async with aclosing(bodies):
        release = context.client.acquire_terms(terms)
        try:
            async for body in bodies:
                yield body
        finally:
            release()


def _checked(given: EventFilter) -> filters.EventFilter:
    """Read a filter as the graph knows it."""
    box = given.within
    return filters.EventFilter.of(
        users=None if given.users is None else [_user(id_) for id_ in given.users],
        keywords=given.keywords,
        within=None if box is None else filters.Box(box.south, box.west, box.north, box.east),
        sample=given.sample,
        firehose=bool(given.firehose),
        kinds=given.kinds,
    )


def _user(id_: str) -> int:
    try:
        user = ids.number(ids.Kind.USER, id_)
    except BadInput:
        user = None
    if user is None:
        raise BadInput(f"The entry {filters.shortened(id_)!r} of 'users' is not the id of a user.")
    return user


def cursors(bodies: Sequence[HomeUpdate | StreamUpdate], context: Context) -> list[str]:
    """Give the cursors that a client resumes from after events."""
    return [encode_cursor(CursorKind.LOG, body.number) for body in bodies]


def posts(bodies: Sequence[PostAdded | PostPublished], context: Context) -> list[Post]:
    """Give the posts that events brought; where an edge is asked for, a post stands for it."""
    return [body.post for body in bodies]


def post_ids(bodies: Sequence[PostRemoved | PostDeleted], context: Context) -> list[str]:
    """Give the global ids of the posts that were deleted."""
    return [ids.encode(ids.Kind.POST, body.post) for body in bodies]


def author_ids(bodies: Sequence[PostRemoved | PostDeleted], context: Context) -> list[str]:
    """Give the global ids of the deleted posts' authors."""
    return [ids.encode(ids.Kind.USER, body.author) for body in bodies]


async def users(bodies: Sequence[AuthorAdded | AuthorRemoved], context: Context) -> list[User | None]:
    """Give the authors whom the viewer followed or unfollowed. One round trip."""
    return await context.loaders.users.load_many(body.user for body in bodies)


async def followers(bodies: Sequence[UserFollowed | UserUnfollowed], context: Context) -> list[User | None]:
    """Give those who followed or unfollowed. One round trip."""
    return await context.loaders.users.load_many(body.follower for body in bodies)


async def followees(bodies: Sequence[UserFollowed | UserUnfollowed], context: Context) -> list[User | None]:
    """Give those who were followed or unfollowed. One round trip."""
    return await context.loaders.users.load_many(body.followee for body in bodies)
