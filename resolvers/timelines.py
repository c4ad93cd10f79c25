"""Timelines: a person's own posts, and the viewer's home timeline."""

import asyncio
from collections.abc import Awaitable, Iterator, Sequence

from graph.model import Page, Post, Timeline, TimelineKind
from graph.paging import CursorKind, Window
from resolvers import ids
from resolvers.connections import After, Before, First, Last, PostPage
from resolvers.context import Context
from resolvers.references import Identified

KINDS = {TimelineKind.HOME: ids.Kind.HOME_TIMELINE, TimelineKind.USER: ids.Kind.USER_TIMELINE}


def user_timelines(users: Sequence[Identified], context: Context) -> list[Timeline]:
    """Name people's own timelines."""
    return [Timeline(user.id, TimelineKind.USER) for user in users]


def home_timelines(users: Sequence[Identified], context: Context) -> list[Timeline | None]:
    """Name the home timeline of the one who is the viewer: nobody else's concerns the viewer."""
    return [Timeline(user.id, TimelineKind.HOME) if user.id == context.viewer_id else None for user in users]


def global_ids(timelines: Sequence[Timeline], context: Context) -> list[str]:
    """Give timelines' global ids."""
    return [ids.encode(KINDS[timeline.kind], timeline.owner) for timeline in timelines]


def posts(
    timelines: Sequence[Timeline],
    context: Context,
    *,
    first: First = None,
    after: After = None,
    last: Last = None,
    before: Before = None,
) -> Awaitable[list[PostPage | Exception]]:
    """Page through timelines of both kinds, newest first; the posts come with the page.

    Two round trips for a cached home timeline and for people's own; on a cluster one before them for the watermark,
    if the server has not begun to read it. Raises BadPaging; a page that the archive keeps back fails alone.
    """
    window = Window.of(CursorKind.POST, first=first, after=after, last=last, before=before)
    return context.start(pages_of(timelines, context, window))


async def pages_of(timelines: Sequence[Timeline], context: Context, window: Window) -> list[PostPage | Exception]:
    """Read the pages of timelines, and before them the watermark."""
    watermark = context.watermark()
    if not context.graph.store.in_order:
        await watermark
    loaders = {TimelineKind.HOME: context.loaders.home_timelines, TimelineKind.USER: context.loaders.user_timelines}
    kinds = {timeline.kind for timeline in timelines}
    asked = [
        loaders[kind].load_many([(each.owner, window) for each in timelines if each.kind is kind]) for kind in kinds
    ]
    found = [await asked[0]] if len(asked) == 1 else await asyncio.gather(*asked)
    pages: dict[TimelineKind, Iterator[Page[Post] | Exception]] = dict(zip(kinds, map(iter, found), strict=True))
    mark, in_order = await watermark, [next(pages[timeline.kind]) for timeline in timelines]
    return [page if isinstance(page, Exception) else PostPage(page, mark) for page in in_order]
