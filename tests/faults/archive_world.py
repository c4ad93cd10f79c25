"""A world whose log is archived, and the comparison of the archive with the log and with all pages."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from graph import Graph, keys
from graph.archive.archive import Archive
from graph.archive.rows import DELETION, FOLLOW, POST, UNFOLLOW, EventRow, same_event, stored
from graph.archiver.batch import row_of
from graph.errors import StoreUnavailable
from graph.model import MAX_NUMBER
from graph.store.store import Store
from graph.visibility.views import SYSTEM
from tests.conftest import CHEAP
from tests.support.graph_worlds import PATIENCE, befriend, counts_of, home, own, people, posts

HOT, SLACK = 3, 2
MANY = 1_000_000
LEASE = timedelta(seconds=0.2)


def open_on(url: str, archive_url: str, store: Callable[[str], Store] = Store, **tuning: Any) -> Graph:
    """Return a graph with tiny hot windows, like that of another process."""
    options: dict[str, Any] = {"hot_posts": HOT, "hot_slack": SLACK} | tuning
    return Graph(store(url), Archive(archive_url), replace(CHEAP, **options))


@asynccontextmanager
async def opened(url: str, archive_url: str, **tuning: Any) -> AsyncIterator[Graph]:
    """Open a graph for the duration of the block."""
    graph = open_on(url, archive_url, **tuning)
    try:
        yield graph
    finally:
        await graph.close()


@asynccontextmanager
async def working(graph: Graph) -> AsyncIterator[None]:
    """Run a worker with its archiver for the duration of the block, and wait until it has closed its connections."""
    task = asyncio.create_task(graph.worker(LEASE).run())
    try:
        yield
        assert not task.done(), "the worker has failed"
    finally:
        while not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=5)


async def settle(graph: Graph) -> int:
    """Create users who follow each other, and archive their posts. Return the archive watermark.

    The oldest posts of bob leave the store.
    """
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob, carol)
    await befriend(graph, carol, bob)
    await posts(graph, carol, "one", "two")
    await posts(graph, bob, *map(str, range(HOT + SLACK + 2)))
    return await archive_all(graph)


async def archive_all(graph: Graph) -> int:
    """Project and archive everything, as the active archiver. Return the archive watermark."""
    await graph.worker(timedelta(0)).drain()
    await graph.store.run("DEL", keys.ARCHIVER)
    await graph.archiver.work()
    await graph.log.watermark()
    return (await graph.archive.state()).watermark


async def rows_of(graph: Graph) -> list[EventRow]:
    """Return all events of the archive."""
    return await graph.archive.range(0, MAX_NUMBER, MANY)


async def watermarks(graph: Graph) -> tuple[int, int, int]:
    """Return the archive watermark in the store, the projection watermark, and the archive watermark in the archive."""
    archived, watermark = await graph.store.send([("GET", keys.ARCHIVED), ("GET", keys.WATERMARK)])
    return int(archived or 0), int(watermark or 0), (await graph.archive.state()).watermark


async def caught_up(graph: Graph, last: int) -> None:
    """Wait until every event up to the number `last` is projected and archived."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                if min(await watermarks(graph)) >= last:
                    return
            except StoreUnavailable:
                pass
            await asyncio.sleep(0.02)


async def agree(graph: Graph) -> None:
    """Assert that the archive holds the log, and that all pages and counts agree with the archive."""
    rows = await rows_of(graph)
    assert len({row.number for row in rows}) == len(rows)
    held = {row.number: row for row in rows}
    for entry in await graph.store.run("XRANGE", keys.LOG, "-", "+"):
        row = row_of(entry)
        if row is not None:
            assert same_event(held[row.number], stored(row)), "the archive holds another event"
    deleted = {row.subject for row in rows if row.kind == DELETION}
    written: defaultdict[int, list[int]] = defaultdict(list)
    follows: set[tuple[int, int | None]] = set()
    for row in rows:
        assert (row.number in deleted) <= (row.kind != POST), "a deleted post has content"
        if row.kind == POST:
            written[row.actor].append(row.number)
        elif row.kind in (FOLLOW, UNFOLLOW):
            (follows.add if row.kind == FOLLOW else follows.discard)((row.actor, row.subject))
    size = 3 if len(rows) < 5000 else 99
    for user in await graph.archive.user_ids(0, MANY):
        followed = sorted(followee for follower, followee in follows if follower == user and followee)
        assert await own(graph, user, size) == written[user][::-1], "a user timeline is wrong"
        assert sorted(await graph.follows.followed_by(user)) == followed
        shown = sorted((post for author in (user, *followed) for post in written[author]), reverse=True)
        assert await home(graph, user, size + 1) == shown, "a home timeline is wrong"
        [counts] = await counts_of(graph, [user])
        followers = sum(followee == user for _, followee in follows)
        assert counts == (followers, len(followed), len(written[user])), "counts are wrong"
    assert await graph.posts.get_many(SYSTEM, sorted(filter(None, deleted))) == [None] * len(deleted)
