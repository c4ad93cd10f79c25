"""The resolvers of timelines: those of users and lists, the home timeline, and the public timeline."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

from executor.futures import Shared
from executor.loader import DataLoader
from graph.model import Page, Post, Timeline, TimelineKind
from graph.paging import CursorKind, Window
from resolvers import ids
from resolvers.connections import (
    After,
    Before,
    First,
    Last,
    PostPage,
    SameCursor,
    SameNumber,
    as_post_pages,
    first_page_cursors,
)
from resolvers.context import Context
from resolvers.loaders import Loaders
from resolvers.page_loading import PageKey
from resolvers.references import Identified

KINDS = {
    TimelineKind.HOME: ids.Kind.HOME_TIMELINE,
    TimelineKind.USER: ids.Kind.USER_TIMELINE,
    TimelineKind.REPLIES: ids.Kind.REPLIES_TIMELINE,
    TimelineKind.LIST: ids.Kind.LIST_TIMELINE,
    TimelineKind.PUBLIC: ids.Kind.PUBLIC_TIMELINE,
}


def user_timelines(users: Sequence[Identified], context: Context) -> list[Timeline]:
    """Return the users' own timelines."""
    return [Timeline(user.id, TimelineKind.USER) for user in users]


def reply_timelines(users: Sequence[Identified], context: Context) -> list[Timeline]:
    """Return the timelines of the users' replies."""
    return [Timeline(user.id, TimelineKind.REPLIES) for user in users]


def global_ids(timelines: Sequence[Timeline], context: Context) -> list[str]:
    """Return the global ids of timelines."""
    kinds = [KINDS[timeline.kind] for timeline in timelines]
    return [ids.encode(kind, *[each.owner][: kind.arity]) for kind, each in zip(kinds, timelines, strict=True)]


async def public_timeline(context: Context) -> Timeline:
    """Return the public timeline with the current archive watermark. One query. Raises ArchiveUnavailable."""
    return await context.graph.public_timeline.begin()


async def live_cursors(
    timelines: Sequence[Timeline],
    context: Context,
    *,
    first: SameNumber = None,
    after: SameCursor = None,
    last: SameNumber = None,
    before: SameCursor = None,
) -> list[str | None]:
    """Return log cursors. A subscription that starts from one receives every event that the pages do not contain.

    The cursor is a watermark, cached in the process, that was read before any page; for the public timeline, it is the
    archive watermark. None if the arguments are not those of a first page.
    """
    watermark = await context.watermark()
    numbers = [each.watermark if each.kind is TimelineKind.PUBLIC else watermark for each in timelines]
    return first_page_cursors(numbers, after, before)


def entries(
    timelines: Sequence[Timeline],
    context: Context,
    *,
    first: First = None,
    after: After = None,
    last: Last = None,
    before: Before = None,
) -> Awaitable[list[PostPage | Exception]]:
    """Return a page of each timeline, newest first.

    Two round trips for cached home timelines and users' own timelines. Raises BadPaging. If the archive is down, only
    the pages that need it fail.
    """
    window = Window.of(CursorKind.POST, first=first, after=after, last=last, before=before)
    kinds = {timeline.kind for timeline in timelines}
    if len(kinds) == 1 and context.note_watermark():
        return pages_of_kind(kinds.pop(), timelines, context, window).then(as_post_pages)
    return context.start(timeline_pages(timelines, context, window))


LOADERS: dict[TimelineKind, Callable[[Loaders], DataLoader[PageKey, Page[Post]]]] = {
    TimelineKind.HOME: lambda loaders: loaders.home_timelines,
    TimelineKind.USER: lambda loaders: loaders.user_timelines,
    TimelineKind.REPLIES: lambda loaders: loaders.reply_timelines,
    TimelineKind.LIST: lambda loaders: loaders.list_timelines,
    TimelineKind.PUBLIC: lambda loaders: loaders.public_timelines,
}


def pages_of_kind(
    kind: TimelineKind, timelines: Sequence[Timeline], context: Context, window: Window
) -> Shared[list[Page[Post]]]:
    """Return a page of each timeline of one kind."""
    loader = LOADERS[kind](context.loaders)
    return loader.fetch_many([(each.owner or each.watermark, window) for each in timelines])


async def timeline_pages(timelines: Sequence[Timeline], context: Context, window: Window) -> list[PostPage | Exception]:
    """Return a page of each timeline. The live cursor's watermark is read first: it must not be newer than a page."""
    await context.watermark()
    kinds = {timeline.kind for timeline in timelines}
    lookups = [
        pages_of_kind(kind, [each for each in timelines if each.kind is kind], context, window) for kind in kinds
    ]
    loaded = await asyncio.gather(*lookups)
    by_kind: dict[TimelineKind, Iterator[Page[Post] | Exception]] = dict(zip(kinds, map(iter, loaded), strict=True))
    return as_post_pages([next(by_kind[timeline.kind]) for timeline in timelines])
