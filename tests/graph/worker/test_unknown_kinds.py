"""Events of a later version: the worker stops at them, and a worker of the later version projects them."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from graph import Graph
from graph.errors import OutdatedWorker
from graph.log.encoding import KINDS
from graph.log.events import Followed, PostPublished, ProfileChanged
from graph.log.numbers import entry_id
from graph.worker.consumer import GROUP, MAX_DELIVERIES
from tests.graph.worker.unprojected import SOON, append, read_and_die
from tests.support.graph_worlds import PATIENCE, Open, archive_log, background, dead_letters, home, people, reached

WORKER_WITHOUT_PROFILES = """
import asyncio, sys
from datetime import timedelta
from graph.log.encoding import KINDS
from tests.support.graphs import open_graph

async def main():
    del KINDS["ProfileChanged"]
    graph = await open_graph(sys.argv[1])
    await graph.worker(timedelta(milliseconds=50)).run()

asyncio.run(main())
"""


@asynccontextmanager
async def previous_version(store_url: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a worker that does not know the kind ProfileChanged."""
    command = (sys.executable, "-c", WORKER_WITHOUT_PROFILES, store_url)
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        await process.wait()


@pytest.fixture
def outdated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the kind ProfileChanged from those that this process knows."""
    monkeypatch.delitem(KINDS, "ProfileChanged")


async def deliveries(graph: Graph) -> dict[str, int]:
    """Return the number of deliveries of each pending event."""
    rows: list[Any] = await graph.store.run("XPENDING", "{log}", GROUP, "-", "+", 1000)
    return {entry: count for entry, _, _, count in rows}


async def test_the_worker_of_the_previous_version_leaves_new_kinds_to_that_of_the_new_one(
    graph: Graph, store_url: str
) -> None:
    """It projects the earlier events, reports the kind, and continues when the new worker has projected the event."""
    alice, bob = await people(graph, "alice", "bob")
    async with previous_version(store_url) as previous:
        follow, unknown, post = await append(
            graph, Followed(alice, bob), ProfileChanged(bob, "Bobby"), PostPublished(bob, "hi")
        )
        assert previous.stderr is not None
        error = (await asyncio.wait_for(previous.stderr.readline(), PATIENCE)).decode()
        assert "'ProfileChanged'" in error
        assert entry_id(unknown) in error
        await reached(graph.log.watermark, follow)
        assert list(await graph.follows.followed_by(alice)) == [bob]
        await asyncio.sleep(0.5)
        assert await graph.log.watermark() == unknown - 1

        async with background(graph.worker(timedelta(seconds=1)).run()):
            [later] = await append(graph, PostPublished(bob, "still there"))
            await reached(graph.log.watermark, later)
        [user] = await graph.users.get_many([bob])
        assert user is not None
        assert user.name == "Bobby"
        assert await home(graph, alice) == [later, post]

        [last] = await append(graph, PostPublished(bob, "for the previous version"))
        await reached(graph.log.watermark, last)
        assert await dead_letters(graph) == []


@pytest.mark.usefixtures("outdated")
async def test_draining_ends_with_an_error_at_an_unknown_kind(graph: Graph) -> None:
    """It does not wait for a worker of another version, and the earlier events are projected."""
    alice, bob = await people(graph, "alice", "bob")
    follow, unknown, _ = await append(graph, Followed(alice, bob), ProfileChanged(bob, "B"), Followed(bob, alice))

    with pytest.raises(OutdatedWorker, match="which this version does not know") as raised:
        await asyncio.wait_for(graph.worker().drain(), PATIENCE)

    assert (raised.value.kind, raised.value.entry) == ("ProfileChanged", entry_id(unknown))
    assert list(await graph.follows.followed_by(alice)) == [bob]
    assert list(await graph.follows.followed_by(bob)) == []
    assert follow <= await graph.log.watermark() == unknown - 1


@pytest.mark.usefixtures("outdated")
async def test_an_unknown_event_and_those_after_it_are_released_without_counting(graph: Graph) -> None:
    """This holds however often outdated workers read them. Other workers need not wait for the lease."""
    alice, bob = await people(graph, "alice", "bob")
    held = await append(graph, ProfileChanged(bob, "B"), Followed(bob, alice))
    for _ in range(MAX_DELIVERIES + 2):
        with pytest.raises(OutdatedWorker):
            await asyncio.wait_for(graph.worker(timedelta(hours=1)).drain(), PATIENCE)

    assert await deliveries(graph) == dict.fromkeys(map(entry_id, held), 0)
    assert await dead_letters(graph) == []


async def test_an_unknown_event_that_was_delivered_too_often_is_no_dead_letter(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its readers died. A worker that knows the kind projects the event."""
    [alice] = await people(graph, "alice")
    await graph.worker().drain()
    [unknown] = await append(graph, ProfileChanged(alice, "A"))
    await read_and_die(graph)
    claim = ("XCLAIM", "{log}", GROUP, "dead", 0, entry_id(unknown), "RETRYCOUNT")
    await graph.store.run(*claim, MAX_DELIVERIES)

    with monkeypatch.context() as outdated:
        outdated.delitem(KINDS, "ProfileChanged")
        with pytest.raises(OutdatedWorker):
            await asyncio.wait_for(graph.worker(timedelta(0)).drain(), PATIENCE)
    assert await dead_letters(graph) == []

    await graph.store.run(*claim, 1)
    await graph.worker(timedelta(0)).drain()
    [user] = await graph.users.get_many([alice])
    assert user is not None
    assert user.name == "A"


@pytest.mark.usefixtures("outdated")
async def test_a_stopped_worker_reads_no_further(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes over events before the unknown one if their worker died."""
    monkeypatch.setattr("graph.worker.worker.UNKNOWN_SECONDS", 0.05)
    alice, bob = await people(graph, "alice", "bob")
    await graph.worker().drain()
    await append(graph, Followed(alice, bob))
    await read_and_die(graph)
    [unknown] = await append(graph, ProfileChanged(bob, "B"))

    async with background(graph.worker(SOON).run()):
        await reached(graph.log.watermark, unknown - 1)
        await append(graph, Followed(bob, alice))
        await asyncio.sleep(0.3)

        assert list(await graph.follows.followed_by(alice)) == [bob]
        assert list(await graph.follows.followed_by(bob)) == []
        assert list(await deliveries(graph)) == [entry_id(unknown)]


@pytest.mark.usefixtures("outdated")
async def test_a_stopped_worker_finishes_fan_out_tasks(another: Open) -> None:
    """The tasks are finished before draining ends with an error."""
    graph = await another(sync_followers=0, fan_out_task=1)
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await graph.follows.follow(alice, [carol])
    await graph.follows.follow(bob, [carol])
    await home(graph, alice)
    post, _ = await append(graph, PostPublished(carol, "hi"), ProfileChanged(carol, "C"))

    with pytest.raises(OutdatedWorker):
        await asyncio.wait_for(graph.worker().drain(), PATIENCE)

    assert await graph.store.run("XLEN", "{log}:fanouts") == 0
    assert await graph.log.watermark() == post


@pytest.mark.usefixtures("outdated")
async def test_a_stopped_worker_still_tidies_the_log(another: Open) -> None:
    """It does not claim the events that it has released."""
    graph = await another(log_retention=timedelta(0))
    [alice] = await people(graph, "alice")
    [unknown] = await append(graph, ProfileChanged(alice, "A"))
    await archive_log(graph)

    async with background(graph.worker(SOON).run()):
        await reached(graph.log.trimmed, alice)

    assert list(await deliveries(graph)) == [entry_id(unknown)]


@pytest.mark.usefixtures("outdated")
async def test_a_worker_stops_at_the_first_of_several_unknown_events(graph: Graph) -> None:
    """The worker stops there although it meets a later one first."""
    [alice] = await people(graph, "alice")
    await graph.worker().drain()
    [first] = await append(graph, ProfileChanged(alice, "A"))
    await read_and_die(graph)
    await append(graph, ProfileChanged(alice, "B"))

    with pytest.raises(OutdatedWorker) as raised:
        await asyncio.wait_for(graph.worker(timedelta(0)).drain(), PATIENCE)

    assert raised.value.entry == entry_id(first)
