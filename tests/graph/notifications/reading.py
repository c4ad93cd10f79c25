"""Helpers that write and read notifications."""

from typing import Any

from redis.asyncio import Redis

from graph import Graph, keys
from graph.log.events import Event, EventBody, PostPublished
from graph.log.notification_groups import Notification
from graph.paging import CursorKind, Window, encode_cursor
from graph.projections.mode import Mode
from graph.visibility.views import View


def view(graph: Graph, user: int) -> View:
    """Return the view of a user in a new request."""
    return graph.visibility.of(user)


async def mention(graph: Graph, author: int, *users: int) -> int:
    """Publish a post that mentions users, and return its id."""
    [event] = await graph.commit([PostPublished(author, "hello", mentions=users)])
    return event.number


def newest(count: int, after: int | None = None) -> Window:
    """Return the window of the newest notifications older than `after`."""
    cursor = None if after is None else encode_cursor(CursorKind.NOTIFICATION, after)
    return Window.of(CursorKind.NOTIFICATION, first=count, after=cursor)


def oldest(count: int, before: int | None = None) -> Window:
    """Return the window of the oldest notifications newer than `before`."""
    cursor = None if before is None else encode_cursor(CursorKind.NOTIFICATION, before)
    return Window.of(CursorKind.NOTIFICATION, last=count, before=cursor)


async def all_of(graph: Graph, user: int, count: int = 100) -> list[Notification]:
    """Return all notifications of a user, read page by page."""
    found: list[Notification] = []
    while True:
        page = await graph.notifications.page(view(graph, user), newest(count, found[-1].number if found else None))
        found += page.items
        if not page.has_next:
            return found


async def summary(graph: Graph, user: int) -> list[tuple[str, tuple[int, ...], int]]:
    """Return the kind, the users and the number of users of each notification of a user."""
    return [(each.kind.name, each.actors, each.actors_count) for each in await all_of(graph, user)]


async def listed(raw: Redis, user: int) -> dict[str, int]:
    """Return the members of a user's list."""
    rows: Any = await raw.zrange(keys.notifications(user), 0, -1, withscores=True)
    return {member: int(score) for member, score in rows}


async def project(graph: Graph, *events: tuple[int, EventBody]) -> None:
    """Project events, one at a time."""
    for number, body in events:
        await graph.projections.project([Event(number, body)], Mode.WORKER)
