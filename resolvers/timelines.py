"""Timelines: a person's own posts, and the viewer's home timeline."""

import asyncio
from collections.abc import Sequence

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


async def posts(
    timelines: Sequence[Timeline],
    context: Context,
    *,
    first: First = None,
    after: After = None,
    last: Last = None,
    before: Before = None,
) -> list[PostPage | Exception]:
    """Page through timelines of both kinds, newest first; the posts come with the page.

    Two round trips for a cached home timeline and for people's own; on a cluster one before them for the drained mark,
    if the server has not begun to read it. Raises BadPaging; a page that the archive keeps back fails alone.
    """
    window = Window.of(CursorKind.POST, first=first, after=after, last=last, before=before)
    drained = context.drained()
    if not context.graph.store.in_order:
        await drained
    homes = context.loaders.home_timelines.load_many((each.owner, window) for each in timelines if is_home(each))
    others = context.loaders.user_timelines.load_many((each.owner, window) for each in timelines if not is_home(each))
    home_pages, other_pages, mark = await asyncio.gather(homes, others, drained)
    of_homes, of_others = iter(home_pages), iter(other_pages)
    pages: list[Page[Post] | Exception] = [next(of_homes if is_home(each) else of_others) for each in timelines]
    return [page if isinstance(page, Exception) else PostPage(page, mark) for page in pages]


def is_home(timeline: Timeline) -> bool:
    """Tell a home timeline from a person's own."""
    return timeline.kind is TimelineKind.HOME
