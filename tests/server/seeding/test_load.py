"""Seeding: the store ends in the state that the API would create, whatever fails in between."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from graph import Graph
from graph.archive.archive import Archive
from graph.errors import ArchiveUnavailable, GraphError, Rejected, StoreUnavailable
from graph.log.events import PostDeleted
from graph.store.commands import Command
from graph.visibility.views import SYSTEM
from server.demo.people import PASSWORD, SEVEN, demo_world
from server.seeding.load import FILLING, WRITING, SeedRefused, check_complete, demo_source, holds_demo, load
from tests.support.exploring import also_at_length
from tests.support.graph_worlds import PATIENCE, background, cached, outcomes_of
from tests.support.graphs import CHEAP, archive_file, open_graph
from tests.support.stores import HookedStore, InterceptedStore, Stop
from tests.support.worlds import BASE, as_it_is, as_it_should_be, settle_small_world

T = TypeVar("T")

UNAVAILABLE = (StoreUnavailable, ArchiveUnavailable)
SMALL = demo_source(people=16, posts=40)
NOW = datetime.now(UTC).replace(microsecond=0)
AGES = pytest.mark.parametrize("base", [BASE, NOW], ids=["of long ago", "up to now"])
"""Tombstones and posts of long ago are not in the store."""


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Split a small world into many batches."""
    monkeypatch.setattr("server.seeding.load.BATCH", 60)


async def test_the_store_holds_the_world(graph: Graph) -> None:
    """Users, counts, lists with their times, relationships and home timelines equal plain sets over the events."""
    world = await settle_small_world(graph)
    assert await as_it_is(graph, list(world.people())) == as_it_should_be(world)


async def test_deleted_posts_stay_deleted(graph: Graph) -> None:
    world = await settle_small_world(graph, posts=900)
    gone = [event.body.post for event in world.events if isinstance(event.body, PostDeleted)]
    assert gone
    assert not any(await graph.posts.get_many(SYSTEM, gone))


async def test_only_the_seven_can_log_in(graph: Graph) -> None:
    world = await settle_small_world(graph)
    for role in SEVEN:
        assert (await graph.users.check_password(role.person.login, PASSWORD)).name == role.person.name
    generated_profile = next(login for login in world.people() if login not in world.passwords)
    for password in (PASSWORD, ""):
        with pytest.raises(Rejected):
            await graph.users.check_password(generated_profile, password)


async def test_nothing_is_seeded_twice(graph: Graph) -> None:
    """A second seeding finds the record of the first and writes nothing. The base time stays the same."""
    assert await load(graph, SMALL, now=BASE)
    last = await graph.log.last()
    assert not await load(graph, SMALL)
    assert await graph.log.last() == last


async def test_progress_begins_at_zero_and_ends_at_totals_that_never_change(graph: Graph, small_batches: None) -> None:
    steps: list[tuple[str, int, int]] = []
    await load(graph, SMALL, lambda step, done, total: steps.append((step, done, total)), BASE)
    for name, total in ((WRITING, SMALL.count(BASE)), (FILLING, 16)):
        done = [count for step, count, of in steps if step == name]
        assert done == sorted(done)
        assert (done[0], done[-1]) == (0, total)
        assert {of for step, _, of in steps if step == name} == {total}
    assert steps == sorted(steps, reverse=True, key=lambda step: step[0])


async def test_progress_of_a_second_seeding_begins_where_the_first_failed(graph: Graph, small_batches: None) -> None:
    """Otherwise the estimate of the remaining time would be wrong."""
    failing = await failing_graph(graph.store.url, 11, before=True)
    with pytest.raises(UNAVAILABLE):
        await load(failing, SMALL, now=BASE)
    await failing.close()
    steps: list[tuple[str, int, int]] = []

    await load(graph, SMALL, lambda step, done, total: steps.append((step, done, total)))

    assert steps[0][0] == WRITING
    assert 60 <= steps[0][1] < SMALL.count(BASE)
    assert (WRITING, SMALL.count(BASE), SMALL.count(BASE)) in steps


@AGES
async def test_seeded_events_are_projected_and_archived(graph: Graph, base: datetime) -> None:
    """A worker finds nothing to do, and the log is empty."""
    await load(graph, SMALL, now=base)
    assert await graph.log.watermark() == await graph.log.last() == (await graph.archive.state()).watermark
    assert not await graph.log.end()
    before = graph.store.commands
    await graph.worker().drain()
    assert graph.store.commands - before <= 10


async def test_nothing_can_be_written_during_a_seeding(store_url: str, small_batches: None) -> None:
    """Processes with the former binding are refused until the store is complete. Home caches start empty."""
    world = demo_world(BASE, people=16, posts=40)
    seeding, writing = await open_graph(store_url, store=HookedStore), await open_graph(store_url)
    alice = world.people()["alice"]
    await writing.binding.check()
    stop = Stop(seeding.store, lambda command: any(str(word).startswith("post:") for word in command))
    try:
        async with background(load(seeding, SMALL, now=BASE)) as task:
            await asyncio.wait_for(stop.reached.wait(), PATIENCE)
            with pytest.raises(StoreUnavailable):
                await writing.posts.publish(alice, "too early")
            await cached(writing, alice)
            stop.resume()
            assert await task
        assert (await as_it_is(writing, ["alice"])).homes["alice"] == world.home(alice)
        post = await writing.posts.publish(alice, "hello")
        assert post.id > world.events[-1].number
    finally:
        await seeding.close()
        await writing.close()


async def test_events_after_a_seeding_have_higher_numbers(graph: Graph) -> None:
    """The worker projects events after the seeding."""
    world = await settle_small_world(graph)
    post = await graph.posts.publish(world.people()["bob"], "hello")
    assert post.id > world.events[-1].number
    await graph.worker().drain()
    assert (await as_it_is(graph, ["alice"])).homes["alice"][0] == post.id


class Calls:
    """The calls to the store and the archive that a process makes before it fails.

    The n-th call is applied or, with `before`, not sent.
    """

    def __init__(self, left: int, *, before: bool) -> None:
        self.left = left
        self.before = before

    async def call(self, work: Callable[[], Awaitable[Any]], error: GraphError) -> Any:
        self.left -= 1
        if self.left > 0:
            return await work()
        if self.left == 0 and not self.before:
            await work()
        raise error


class FailingStore(InterceptedStore):
    """A store that fails with the calls of its process."""

    calls = Calls(10**9, before=True)

    async def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        exchange = super()._exchange
        found: list[Any] = await self.calls.call(lambda: exchange(commands), StoreUnavailable("a fault of the test"))
        return found


class FailingArchive(Archive):
    """An archive that fails with the calls of its process."""

    calls = Calls(10**9, before=True)

    async def _transaction(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        transaction = super()._transaction
        found: T = await self.calls.call(lambda: transaction(work), ArchiveUnavailable("a fault of the test"))
        return found


async def failing_graph(url: str, calls: int, *, before: bool) -> Graph:
    archive = FailingArchive(f"sqlite:///{archive_file(url)}")
    graph = await open_graph(url, CHEAP, partial(FailingStore, single_slot=True), archive)
    assert isinstance(graph.store, FailingStore)
    graph.store.calls = archive.calls = Calls(calls, before=before)
    return graph


@AGES
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
async def test_a_seeding_that_fails_at_any_call_is_completed_by_the_next(
    store_url: str, small_batches: None, calls: Iterator[int], base: datetime, *, before: bool
) -> None:
    """Each seeding fails later than the previous one, and continues it."""
    for call in calls:
        failing = await failing_graph(store_url, call + 1, before=before)
        try:
            await load(failing, SMALL, now=base)
            break
        except UNAVAILABLE:
            pass
        finally:
            await failing.close()
    assert call > 10
    graph = await open_graph(store_url)
    expected = as_it_should_be(demo_world(base, people=16, posts=40))
    try:
        assert await as_it_is(graph, list(expected.users)) == expected
    finally:
        await graph.close()


@pytest.mark.parametrize("calls", also_at_length([9, 18, 27], [12, 15, 21, 24, 30]))
async def test_a_seeding_that_failed_once_gives_the_same_world(graph: Graph, small_batches: None, calls: int) -> None:
    """The next seeding keeps the base time and is complete."""
    failing = await failing_graph(graph.store.url, calls, before=calls % 2 == 0)
    with pytest.raises(UNAVAILABLE):
        await load(failing, SMALL, now=BASE)
    await failing.close()
    expected = as_it_should_be(demo_world(BASE, people=16, posts=40))
    assert await load(graph, SMALL)
    assert await as_it_is(graph, list(expected.users)) == expected


KILLED = """
import asyncio, os, signal, sys
from graph.archive.archive import Archive
from tests.server.seeding.test_load import BASE, SMALL, load, open_graph

append = Archive.append

async def append_and_die(*arguments, **options):
    await append(*arguments, **options)
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    Archive.append = append_and_die
    await load(await open_graph(sys.argv[1]), SMALL, now=BASE)

asyncio.run(main())
"""


async def test_a_killed_seeding_is_completed_by_the_next(graph: Graph) -> None:
    """After SIGKILL and a second seeding, each user, post and follow exists once."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, graph.store.url)
    assert await process.wait() == -signal.SIGKILL
    with pytest.raises(SeedRefused, match="an incomplete seeding of"):
        await check_complete(graph)

    assert await load(graph, SMALL)

    expected = as_it_should_be(demo_world(BASE, people=16, posts=40))
    assert await as_it_is(graph, list(expected.users)) == expected


async def test_one_of_two_concurrent_seedings_can_be_refused(store_url: str, small_batches: None) -> None:
    """The next seeding, at the latest, is complete, and each event is in the archive once."""
    graphs = [await open_graph(store_url) for _ in range(2)]
    try:
        outcomes = await outcomes_of(*(load(graph, SMALL, now=BASE) for graph in graphs))
        assert all(outcome is True or isinstance(outcome, SeedRefused) for outcome in outcomes)
        assert await load(graphs[0], SMALL) == (True not in outcomes)
        expected = as_it_should_be(demo_world(BASE, people=16, posts=40))
        assert await as_it_is(graphs[0], list(expected.users)) == expected
    finally:
        for graph in graphs:
            await graph.close()


async def test_a_store_with_other_users_is_refused(graph: Graph) -> None:
    await graph.users.sign_up("somebody", "correct horse")
    last = await graph.log.last()
    with pytest.raises(SeedRefused, match="already holds users"):
        await load(graph, SMALL)
    assert await graph.log.last() == last


async def test_a_store_with_another_seeding_is_refused(graph: Graph) -> None:
    await load(graph, SMALL, now=BASE)
    with pytest.raises(SeedRefused, match="holds the demo world of 16 users and 40 posts; only"):
        await load(graph, demo_source(people=17, posts=40))


async def test_an_archive_with_other_events_is_refused(graph: Graph) -> None:
    """The archive's store was lost. A seeding must not take its place."""
    await graph.users.sign_up("somebody", "correct horse")
    await graph.worker().drain()
    await graph.archiver.work()
    before = await graph.archive.state()
    await graph.store.run("FLUSHALL")
    with pytest.raises(SeedRefused, match="archive already holds events"):
        await load(graph, SMALL)
    assert await graph.archive.state() == before


@pytest.mark.parametrize("calls", [9, 11])
async def test_an_unfinished_seeding_is_not_served_or_replaced(graph: Graph, small_batches: None, calls: int) -> None:
    failing = await failing_graph(graph.store.url, calls, before=True)
    with pytest.raises(UNAVAILABLE):
        await load(failing, SMALL, now=BASE)
    await failing.close()
    with pytest.raises(StoreUnavailable):
        await graph.users.sign_up("somebody", "correct horse")
    with pytest.raises(SeedRefused, match="an incomplete seeding of"):
        await load(graph, demo_source(people=17, posts=40))
    with pytest.raises(SeedRefused, match="an incomplete seeding of"):
        await check_complete(graph)


async def test_the_demo_is_recognised_by_the_note(graph: Graph) -> None:
    assert not await holds_demo(graph)
    await load(graph, SMALL, now=BASE)
    assert await holds_demo(graph)
