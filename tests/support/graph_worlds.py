"""Helpers that create users, follows and posts, and read timelines."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.archiver.archiver import Archiver
from graph.archiver.lease import Lease
from graph.errors import ProblemCode, Rejected, StoreUnavailable
from graph.log import log
from graph.log.events import Event, EventBody, PostPublished, UserCreated
from graph.log.log import IdempotencyKey
from graph.model import Post
from graph.paging import CursorKind, Window, encode_cursor
from graph.store.store import Store
from graph.visibility.views import SYSTEM

PASSWORD = "correct horse"
PATIENCE = 50.0  # seconds to wait for an expected event; less than the 60 seconds for which some tests block others
ENDLESS = 1e9  # seconds

Open = Callable[..., Awaitable[Graph]]


async def append_events(
    graph: Graph, bodies: Sequence[EventBody], idempotency_key: IdempotencyKey | None = None
) -> list[Event]:
    """Append events without projecting them, like a process that dies after its commit."""
    return await graph.log.append(bodies, idempotency_key, binding=await graph.binding.token())


async def people(graph: Graph, *logins: str) -> list[int]:
    """Sign users up in this order, and return their ids."""
    return [(await graph.users.sign_up(login, PASSWORD)).id for login in logins]


async def crowd(graph: Graph, size: int, prefix: str = "fan") -> list[int]:
    """Create users at once, without passwords, and return their ids."""
    logins = [f"{prefix}{index}" for index in range(size)]
    await graph.users.claim_many([(login, login, None) for login in logins])
    return [event.number for event in await graph.commit([UserCreated(login, login, login) for login in logins])]


async def archive_log(graph: Graph) -> None:
    """Archive all projected events of the log."""
    await graph.archiver.work()
    await graph.log.watermark()


def archiver_of(graph: Graph, batch: int) -> Archiver:
    """Return an archiver with batches of this size."""
    return Archiver(
        graph.store,
        graph.archive,
        graph.binding,
        graph.projections,
        graph.hot_window,
        graph.dead_letters,
        Lease(graph.store),
        graph.commit,
        batch=batch,
    )


async def dead_letters(graph: Graph) -> list[dict[str, str]]:
    """Return the fields of all dead letters, with their entries and reasons."""
    return [{"entry": each.entry, "reason": each.reason, **each.fields} async for each in graph.dead_letters.all()]


async def befriend(graph: Graph, follower: int, *followees: int) -> None:
    """Follow users, in this order."""
    for followee in followees:
        await graph.follows.follow(follower, [followee])


async def posts(graph: Graph, author: int, *texts: str) -> list[int]:
    """Publish posts in this order, and return their ids."""
    return [(await graph.posts.publish(author, text)).id for text in texts]


async def many_posts(graph: Graph, author: int, count: int) -> list[int]:
    """Publish posts at once, and return their ids, oldest first."""
    return [event.number for event in await graph.commit([PostPublished(author, f"post {n}") for n in range(count)])]


def newest(count: int, *, after: int | None = None, before: int | None = None) -> Window:
    """Return the window of the newest posts, older than `after` and newer than `before`."""
    return Window.of(CursorKind.POST, first=count, after=cursor(after), before=cursor(before))


def oldest(count: int, *, after: int | None = None, before: int | None = None) -> Window:
    """Return the window of the oldest posts newer than `before`."""
    return Window.of(CursorKind.POST, last=count, after=cursor(after), before=cursor(before))


def cursor(number: int | None) -> str | None:
    return None if number is None else encode_cursor(CursorKind.POST, number)


def ids(items: Sequence[Post]) -> list[int]:
    return [post.id for post in items]


async def home(graph: Graph, viewer: int, size: int = 100) -> list[int]:
    """Return a whole home timeline, read page by page. Assert that only the last page is short."""
    found: list[int] = []
    after: int | None = None
    while True:
        page = await graph.timelines.home(viewer, newest(size, after=after))
        found += ids(page.items)
        assert page.has_previous == (after is not None)
        if not page.has_next:
            return found
        assert len(page.items) == size, "a page is short only at the end"
        after = found[-1]


async def home_upwards(graph: Graph, viewer: int, size: int = 100) -> list[int]:
    """Return a whole home timeline, newest first, read page by page from its oldest post."""
    found: list[int] = []
    before: int | None = None
    while True:
        page = await graph.timelines.home(viewer, oldest(size, before=before))
        found = ids(page.items) + found
        assert page.has_next == (before is not None)
        if not page.has_previous:
            return found
        assert len(page.items) == size, "a page is short only at the end"
        before = found[0]


async def own(graph: Graph, author: int, size: int = 100, *, forward: bool = True) -> list[int]:
    """Return a whole user timeline, newest first, read page by page from either end."""
    found: list[int] = []
    while True:
        edge = (found[-1] if forward else found[0]) if found else None
        [page] = await graph.timelines.user(
            SYSTEM, [author], newest(size, after=edge) if forward else oldest(size, before=edge)
        )
        found = found + ids(page.items) if forward else ids(page.items) + found
        if not (page.has_next if forward else page.has_previous):
            return found
        assert len(page.items) == size, "a page is short only at the end"


class Counts(NamedTuple):
    """The three counts of a user."""

    followers: int
    following: int
    posts: int


async def counts_of(graph: Graph, users: Sequence[int]) -> list[Counts]:
    """Return the counts of users, in order."""
    columns = await asyncio.gather(
        graph.users.followers_counts(users), graph.users.following_counts(users), graph.users.posts_counts(users)
    )
    return [Counts(*row) for row in zip(*columns, strict=True)]


async def cached(graph: Graph, *viewers: int) -> None:
    """Build the home caches of users."""
    for viewer in viewers:
        await graph.timelines.home(viewer, newest(1))
    await graph.timelines.wait_for_rebuilds()


@dataclass
class Cost:
    """The number of round trips and commands of a block."""

    round_trips: int = 0
    commands: int = 0


@asynccontextmanager
async def counted(of: Graph | Store) -> AsyncIterator[Cost]:
    """Count the round trips and commands of the block.

    In the block, the process does not refresh watermarks, and does not check again whether posts of live streams are
    deleted. Normally it does so after a second, and on a busy machine chance would decide whether that is counted. Nor
    does it give up the look-up of deleted posts, after which each stream would look up its own.
    """
    store, cost = of.store if isinstance(of, Graph) else of, Cost()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "REFRESH_SECONDS", ENDLESS)
        patch.setattr(log, "STALE_SECONDS", ENDLESS)
        patch.setattr("graph.feed.deletions.RECHECK_SECONDS", ENDLESS)
        patch.setattr("graph.feed.combined_stream.RECHECK_SECONDS", ENDLESS)
        patch.setattr("graph.feed.feed.LOOK_UP_SECONDS", ENDLESS)
        trips, commands = store.round_trips, store.commands
        yield cost
        cost.round_trips, cost.commands = store.round_trips - trips, store.commands - commands


async def outcomes_of(*awaitables: Awaitable[Any]) -> list[Any]:
    """Return the results of awaitables, in order, with exceptions in place of results."""
    return list(await asyncio.gather(*awaitables, return_exceptions=True))


@asynccontextmanager
async def background(work: Awaitable[Any]) -> AsyncIterator["asyncio.Task[Any]"]:
    """Run an awaitable concurrently with the block, and cancel it afterwards."""
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        while not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=0.2)


async def reached(read: Callable[[], Awaitable[int]], number: int, seconds: float = PATIENCE) -> None:
    """Wait until a number, such as the watermark, has reached a value."""
    async with asyncio.timeout(seconds):
        while await read() < number:  # noqa: ASYNC110 - the store sends no notification
            await asyncio.sleep(0.01)


async def reconnected(graph: Graph) -> None:
    """Wait until a graph has connected to a store that has just started. After a refusal, the graph pauses."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(StoreUnavailable):
                return await graph.store.ping()


def codes(error: Rejected) -> list[ProblemCode]:
    """Return the codes of a rejection."""
    return [problem.code for problem in error.problems]


async def state(
    raw: "Redis", but: Collection[str] = ("{log}", "{suspended}:version", "home:", "session:")
) -> dict[str, Any]:
    """Return everything in the store except keys with these prefixes. `DELETED` and `ERASING` are always included."""
    found: dict[str, Any] = {}
    async for key in raw.scan_iter(count=1000):
        if key.startswith(tuple(but)) and key not in (keys.DELETED, keys.ERASING):
            continue
        kind = await raw.type(key)
        if kind == "zset":
            members: Any = await raw.zrange(key, 0, -1, withscores=True)
            found[key] = dict(members)
        elif kind == "hash":
            found[key] = await raw.hgetall(key)
        else:
            found[key] = await raw.get(key)
    return found
