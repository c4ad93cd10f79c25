"""The archive is restored from an older backup while processes run."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from redis import Redis

from graph import Graph, keys
from graph.archive.rows import REDACTED, EventRow
from graph.errors import ArchiverStopped, ArchiveUnavailable
from graph.log.events import PostDeleted
from graph.worker.housekeeping import Housekeeping
from server.embedded import EmbeddedStore
from tests.faults.archive_world import agree, archive_all, caught_up, opened, rows_of, settle, watermarks, working
from tests.support.backups import Backup
from tests.support.databases import Server
from tests.support.graph_worlds import PATIENCE, archiver_of, posts, reached

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("prompt_archiver")]


@dataclass
class World:
    """A graph with an archive of each kind, whose log keeps no archived events."""

    graph: Graph
    bob: int
    url: str
    archive_url: str
    back_up: Callable[[str], Backup]


@pytest.fixture
async def world(
    request: pytest.FixtureRequest,
    running_store: EmbeddedStore,
    archive_url: str,
    tmp_path: Path,
    sql_servers: Callable[[str], Server],
) -> AsyncIterator[World]:
    """Create users and posts, which are archived."""
    with Redis.from_url(running_store.url) as client:
        client.flushall()
    kind = request.node.callspec.params["archive_url"]
    server = None if kind == "sqlite" else sql_servers(kind)

    def back_up(name: str) -> Backup:
        return Backup(archive_url, server, tmp_path / f"{tmp_path.name}-{name}")

    async with opened(running_store.url, archive_url) as graph:
        await settle(graph)
        [bob] = await graph.users.ids_of_logins(["bob"])
        yield World(graph, bob or 0, running_store.url, archive_url, back_up)


async def change(world: World, text: str) -> int:
    """Publish posts, so that the oldest leave the store, and delete two old ones. Return the last number."""
    written = await posts(world.graph, world.bob, *(f"{text} {n}" for n in range(8)))
    await archive_all(world.graph)
    await world.graph.posts.delete(world.bob, written[0])
    await world.graph.posts.delete(world.bob, written[-1])
    await archive_all(world.graph)
    return await world.graph.log.last()


async def trim(graph: Graph, url: str, archive_url: str) -> None:
    """Remove all removable events from the log, whatever their age."""
    async with opened(url, archive_url, log_retention=timedelta(0)) as other:
        await other.housekeeping.tidy()
    await graph.log.watermark()


async def undeleted(graph: Graph) -> list[int]:
    """Return the numbers of the events in the log except deleted posts, which may leave the log at any time."""
    events = [event async for event in graph.log.replay(0, await graph.log.last())]
    deleted = {event.body.post for event in events if isinstance(event.body, PostDeleted)}
    return [event.number for event in events if event.number not in deleted]


async def undeleted_rows(graph: Graph) -> list[EventRow]:
    """Return the events in the archive except deleted posts."""
    return [row for row in await rows_of(graph) if row.kind != REDACTED]


@pytest.mark.parametrize("event", ["and then an event", "without a further event"])
async def test_the_archive_is_filled_from_the_log(world: World, event: str) -> None:
    """The running worker archives all later events again, except posts that the log no longer holds.

    The log removes deleted posts as soon as the archive holds the deletion.
    """
    backup = world.back_up("old")
    last = await change(world, "later")
    rows = await undeleted_rows(world.graph)

    async with working(world.graph):
        await asyncio.to_thread(backup.restore)
        if event == "and then an event":
            [last] = await posts(world.graph, world.bob, "last")
        await reached(lambda: watermark_of(world.graph), last)
        await caught_up(world.graph, last)

    assert (await undeleted_rows(world.graph))[: len(rows)] == rows
    await agree(world.graph)


async def watermark_of(graph: Graph) -> int:
    """Return the archive watermark, or 0 while the archive does not answer."""
    try:
        return (await graph.archive.state()).watermark
    except ArchiveUnavailable:
        return 0


async def test_the_log_keeps_what_a_restored_archive_lacks(world: World) -> None:
    """The log keeps the missing events, although it is trimmed after each batch and keeps no archived events."""
    backup = world.back_up("old")
    last = await change(world, "later")
    rows = await rows_of(world.graph)
    await asyncio.to_thread(backup.restore)
    async with opened(world.url, world.archive_url, log_retention=timedelta(0)) as other:
        archiver = archiver_of(other, batch=3)
        while await archiver.archive_batch():
            await other.housekeeping.tidy()
        assert await watermark_of(other) == last

    assert await rows_of(world.graph) == rows
    await agree(world.graph)


async def test_an_archive_older_than_the_log_stops_the_archiver(world: World) -> None:
    """The archiver stops until a newer backup is restored. The log is not trimmed: that backup needs the rest.

    Only deleted posts may have left the log before the archiver has seen the old archive.
    """
    old = world.back_up("old")
    await change(world, "trimmed")
    await trim(world.graph, world.url, world.archive_url)
    newer = world.back_up("newer")
    last = await change(world, "kept")
    rows = await undeleted_rows(world.graph)
    kept = await undeleted(world.graph)
    assert len(kept) == 8
    await asyncio.to_thread(old.restore)

    async with opened(world.url, world.archive_url) as other:
        housekeeping = Housekeeping(other.store, other.log, other.dead_letters, timedelta(0))
        await other.store.run("DEL", keys.ARCHIVER)
        async with working(other):
            alarm = None
            async with asyncio.timeout(PATIENCE):
                while alarm is None:
                    alarm = await other.store.run("GET", keys.ALARM)
                    await asyncio.sleep(0.05)
            assert "Restore a newer backup of the archive" in alarm
            for _ in range(3):
                await housekeeping.tidy()
            assert await undeleted(other) == kept
            await asyncio.to_thread(newer.restore)
            await reached(lambda: watermark_of(other), last)
            await caught_up(other, last)

    assert await undeleted_rows(world.graph) == rows
    await agree(world.graph)


async def test_an_old_archive_stops_an_archiver_that_was_idle(world: World) -> None:
    """An archiver that had already archived everything and read the watermarks still reports the old archive."""
    old = world.back_up("old")
    await change(world, "trimmed")
    await trim(world.graph, world.url, world.archive_url)
    await asyncio.to_thread(old.restore)
    before = await watermarks(world.graph)
    await posts(world.graph, world.bob, "new")

    for _ in range(2):
        with pytest.raises(ArchiverStopped):
            await archive_all(world.graph)

    assert (await watermarks(world.graph))[2] == before[2]
