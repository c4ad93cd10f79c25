"""Timelines: a person's own posts, and the viewer's home timeline."""

import asyncio
from collections.abc import Sequence

from graph.model import Timeline, TimelineKind, User
from graph.paging import CursorKind, Window
from resolvers import ids
from resolvers.connections import After, Before, First, Last, PostPage
from resolvers.context import Context

KINDS = {TimelineKind.HOME: ids.Kind.HOME_TIMELINE, TimelineKind.USER: ids.Kind.USER_TIMELINE}


def user_timelines(users: Sequence[User], context: Context) -> list[Timeline]:
    """Name people's own timelines."""
    return [Timeline(user.id, TimelineKind.USER) for user in users]


def home_timelines(users: Sequence[User], context: Context) -> list[Timeline | None]:
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
) -> list[PostPage]:
    """Page through timelines of both kinds, newest first; the posts come with the page.

    Two round trips for a cached home timeline and for people's own, and one for the drained mark if the
    server has not begun to read it. Raises BadPaging.
    """
    window = Window.of(CursorKind.POST, first=first, after=after, last=last, before=before)
    drained = await context.drained()
    loaders = {
        TimelineKind.HOME: context.loaders.home_timelines,
        TimelineKind.USER: context.loaders.user_timelines,
    }
    pages = await asyncio.gather(*(loaders[timeline.kind].load((timeline.owner, window)) for timeline in timelines))
    return [PostPage(page, drained) for page in pages]
