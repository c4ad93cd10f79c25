"""While the archive's database is down, users read and write: nothing is lost, and nothing is refused needlessly."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from graph import Graph, keys
from graph.archive.archive import Archive
from graph.errors import ArchiveUnavailable
from graph.store.store import Store
from graph.visibility.views import SYSTEM
from tests.conftest import CHEAP
from tests.faults.archive_load import Load
from tests.faults.archive_world import HOT, SLACK, agree, caught_up, rows_of, settle, working
from tests.support.databases import SERVERS, Server
from tests.support.graph_worlds import PATIENCE, background, dead_letters, newest, people, reached

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("prompt_archiver")]

CHANGES, LONG_CHANGES = 60, 20_000  # during an outage
LIMIT = 4000
LONG_LIMIT = 150_000
RETENTION = timedelta(seconds=1)


@contextmanager
def killed(server: Server) -> Iterator[None]:
    """Kill the server, and start it again after the block."""
    server.stop()
    try:
        yield
    finally:
        server.start()


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, sql_servers: Callable[[str], Server]) -> Server:
    """Return a server that tests may kill and freeze. The next test that needs it starts it again."""
    return sql_servers(request.param)


@pytest.fixture
async def graph(store_url: str, server: Server, long_profile: bool) -> AsyncIterator[Graph]:
    """Open a graph whose log keeps few archived events, with posts that only the archive holds."""
    limit = LONG_LIMIT if long_profile else LIMIT
    tuning = replace(CHEAP, hot_posts=HOT, hot_slack=SLACK, log_limit=limit, log_retention=RETENTION)
    graph = Graph(Store(store_url), Archive(server.archive(), timeout=2.0), tuning)
    try:
        await graph.store.run("FLUSHALL")
        await settle(graph)
        yield graph
    finally:
        await graph.close()


async def check_reads(graph: Graph, bob: int) -> None:
    """Assert that the newest posts are shown, and that older ones are reported as unavailable."""
    [page] = await graph.timelines.user(SYSTEM, [bob], newest(HOT - 1))
    assert len(page.items) == HOT - 1
    with pytest.raises(ArchiveUnavailable):
        await graph.timelines.user(SYSTEM, [bob], newest(100))


@pytest.mark.parametrize("down", [Server.frozen, killed], ids=["frozen", "killed"])
async def test_an_outage_of_the_archive_loses_and_refuses_nothing(
    graph: Graph, server: Server, down: Callable[[Server], "AbstractContextManager[None]"], long_profile: bool
) -> None:
    """The log keeps all events until the archive has them, and is trimmed afterwards."""
    changes = LONG_CHANGES if long_profile else CHANGES
    alice, bob, carol = [user or 0 for user in await graph.users.ids_of_logins(["alice", "bob", "carol"])]
    load = Load(graph, [alice, carol, *await people(graph, "dave", "erin")])
    async with working(graph), background(load.run()):
        await reached(lambda: archived(graph), await graph.log.last())
        with down(server):
            failures = graph.archiver.failures  # the first failure ends a batch in progress
            await reached(lambda: asyncio.sleep(0, graph.archiver.failures), failures + 1)
            before, written = await archived(graph), load.written
            while load.written < written + changes:
                await check_reads(graph, bob)
                await asyncio.sleep(0.1)
            assert await archived(graph) == before, "the archive was not down"
            assert await graph.store.run("XLEN", keys.LOG) > changes / 3, "the log was trimmed"
        await caught_up(graph, await graph.log.last())
    assert load.refused == 0, "a change was refused"

    last = await graph.log.last()
    async with working(graph):
        await caught_up(graph, last)
        await trimmed(graph, 0)
    assert await graph.log.trimmed() == last
    assert await dead_letters(graph) == []
    assert len(await rows_of(graph)) > load.written / 3
    await agree(graph)


async def trimmed(graph: Graph, limit: int) -> None:
    """Wait until the log has at most this many events."""
    async with asyncio.timeout(PATIENCE):
        while int(await graph.store.run("XLEN", keys.LOG)) > limit:  # noqa: ASYNC110 - the store sends no notification
            await asyncio.sleep(0.1)


async def archived(graph: Graph) -> int:
    """Return the archive watermark in the store."""
    return int(await graph.store.run("GET", keys.ARCHIVED) or 0)


async def test_a_full_log_still_takes_deletions_and_recovers(graph: Graph, server: Server) -> None:
    """A log that fills up during a long outage of the archive still accepts deletions, and recovers."""
    _, bob, *others = [user or 0 for user in await graph.users.ids_of_logins(["alice", "bob", "carol"])]
    small = Graph(Store(graph.store.url), graph.archive, replace(graph.tuning, log_limit=100))
    load = Load(small, [bob, *others])
    async with working(graph):
        with killed(server):
            async with background(load.run()):
                await reached(lambda: asyncio.sleep(0, load.refused), 20)
            assert await graph.store.run("XLEN", keys.LOG) <= 100
            [page] = await graph.timelines.user(SYSTEM, [bob], newest(1))
            await small.posts.delete(bob, page.items[0].id)
        await caught_up(graph, await graph.log.last())
        await trimmed(graph, 50)
        assert await small.posts.publish(bob, "after")
        await caught_up(graph, await graph.log.last())
    await agree(graph)
    await small.store.close()
