"""Seeding: the store ends in the state that the API would create, whatever fails in between."""

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from graph import Graph
from graph.errors import Rejected, StoreUnavailable
from graph.model import number_at
from graph.store.commands import Command
from server.demo.people import PASSWORD, SEVEN, demo_world
from server.seeding.load import SeedRefused, demo_source, load
from server.seeding.sources import seed_source
from tests.conftest import CHEAP
from tests.support.graph_worlds import background, cached, counts_of, reached
from tests.support.stores import InterceptedStore
from tests.support.worlds import BASE, as_it_is, as_it_should_be, settle_small_world

SMALL = demo_source(people=16, posts=40)
NOW = datetime.now(UTC).replace(microsecond=0)
AGES = pytest.mark.parametrize("base", [BASE, NOW], ids=["of long ago", "up to now"])
"""Old events are only counted in the log; events of the last day are in it."""


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
    gone = [post for post in (event.number for event in world.events) if post not in world.posts()]
    assert not any(await graph.posts.get_many(gone))


async def test_only_the_seven_can_log_in(graph: Graph) -> None:
    world = await settle_small_world(graph)
    for role in SEVEN:
        assert (await graph.users.check_password(role.person.login, PASSWORD)).name == role.person.name
    generated_profile = next(login for login in world.people() if login not in world.passwords)
    for password in (PASSWORD, ""):
        with pytest.raises(Rejected):
            await graph.users.check_password(generated_profile, password)


async def test_nothing_is_seeded_twice(graph: Graph) -> None:
    """A second seeding finds the note of the first and writes nothing. The base time stays the first one."""
    assert await load(graph, SMALL, now=BASE)
    last = await graph.log.last()
    assert not await load(graph, SMALL)
    assert await graph.log.last() == last


async def test_progress_begins_at_zero_and_ends_at_a_total_that_never_changes(
    graph: Graph, small_batches: None
) -> None:
    steps: list[tuple[int, int]] = []
    await load(graph, SMALL, lambda done, total: steps.append((done, total)), BASE)
    assert steps == sorted(steps)
    assert steps[0][0] == 0
    assert {total for _, total in steps} == {steps[-1][0]} == {SMALL.count()}


async def test_progress_of_a_second_seeding_begins_where_the_first_failed(graph: Graph, small_batches: None) -> None:
    """Otherwise the estimate of the remaining time would be wrong."""
    failing = await failing_graph(graph.store.url, 30, before=True)
    with pytest.raises(StoreUnavailable):
        await load(failing, SMALL, now=BASE)
    await failing.close()
    steps: list[tuple[int, int]] = []

    await load(graph, SMALL, lambda done, total: steps.append((done, total)))

    assert steps[0][0] >= 60
    assert steps[-1] == (SMALL.count(), SMALL.count())


@AGES
async def test_seeded_events_are_projected(graph: Graph, base: datetime) -> None:
    """A worker finds nothing to do, although its consumer group existed before."""
    await graph.worker().drain()
    await load(graph, SMALL, now=base)
    assert await graph.log.watermark() == await graph.log.last()
    before = graph.store.commands
    await graph.worker().drain()
    assert graph.store.commands - before < 10


@AGES
async def test_a_worker_can_run_during_a_seeding(graph: Graph, small_batches: None, base: datetime) -> None:
    """The worker projects the events that it finds in the log, and the world is the same."""
    expected = as_it_should_be(demo_world(base, people=16, posts=40))
    async with background(graph.worker().run()):
        await load(graph, SMALL, now=base)
        await reached(graph.log.watermark, await graph.log.last())
    assert await as_it_is(graph, list(expected.users)) == expected
    assert not await graph.dead_letters.oldest()


@AGES
async def test_clients_can_read_during_a_seeding(graph: Graph, small_batches: None, base: datetime) -> None:
    """Home caches that are filled meanwhile lack later posts, and are deleted at the end."""
    world = demo_world(base, people=16, posts=40)
    for calls in range(20, 400, 40):
        failing = await failing_graph(graph.store.url, calls, before=True)
        try:
            await load(failing, SMALL, now=base)
        except StoreUnavailable:
            await cached(graph, *world.people().values())
        finally:
            await failing.close()
    assert await graph.log.last() == world.events[-1].number

    expected = as_it_should_be(world)
    assert await as_it_is(graph, list(expected.users)) == expected


async def test_events_after_a_seeding_have_higher_numbers(graph: Graph) -> None:
    """The worker projects events after the seeding."""
    world = await settle_small_world(graph)
    post = await graph.posts.publish(world.people()["bob"], "hello")
    assert post.id > world.events[-1].number
    await graph.worker().drain()
    assert (await as_it_is(graph, ["alice"])).homes["alice"][0] == post.id


class FailingStore(InterceptedStore):
    """A store that fails from its n-th call on. The n-th call is applied or, with `before`, not sent."""

    calls_left = 10**9
    before = True

    async def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        self.calls_left -= 1
        if self.calls_left > 0:
            return await super()._exchange(commands)
        if self.calls_left == 0 and not self.before:
            await super()._exchange(commands)
        raise StoreUnavailable("a fault injected by the test")


async def failing_graph(url: str, calls: int, *, before: bool) -> Graph:
    graph = await Graph.open(url, CHEAP, partial(FailingStore, single_slot=True))
    assert isinstance(graph.store, FailingStore)
    graph.store.calls_left, graph.store.before = calls, before
    return graph


@AGES
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
async def test_a_seeding_that_fails_at_any_call_is_completed_by_the_next(
    store_url: str, small_batches: None, base: datetime, *, before: bool
) -> None:
    """Each seeding fails one call later than the previous one, and continues it."""
    calls = 1
    while True:
        failing = await failing_graph(store_url, calls, before=before)
        try:
            await load(failing, SMALL, now=base)
            break
        except StoreUnavailable:
            calls += 1
        finally:
            await failing.close()
    assert calls > 10
    graph = await Graph.open(store_url, CHEAP)
    expected = as_it_should_be(demo_world(base, people=16, posts=40))
    try:
        assert await as_it_is(graph, list(expected.users)) == expected
    finally:
        await graph.close()


@AGES
@pytest.mark.parametrize("calls", range(3, 49, 5))
async def test_a_seeding_that_failed_once_gives_the_same_world(
    graph: Graph, small_batches: None, calls: int, base: datetime
) -> None:
    """A worker that drains in between does not wait. The next seeding keeps the base time and is complete."""
    expected = as_it_should_be(demo_world(base, people=16, posts=40))
    failing = await failing_graph(graph.store.url, calls, before=calls % 2 == 0)
    with pytest.raises(StoreUnavailable):
        await load(failing, SMALL, now=base)
    await failing.close()
    async with asyncio.timeout(5):
        await graph.worker().drain()
    assert await load(graph, SMALL)
    assert await as_it_is(graph, list(expected.users)) == expected


KILLED = """
import asyncio, sys
from graph import Graph
from server.seeding.load import load
from server.seeding.sources import seed_source
from tests.support.stores import InterceptedStore

async def main():
    await load(await Graph.open(sys.argv[1]), seed_source(2000, 6000, 3))

asyncio.run(main())
"""


async def test_a_killed_seeding_is_completed_by_the_next(graph: Graph) -> None:
    """After SIGKILL and a second seeding, each user, post and follow exists once."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, graph.store.url)
    await reached(graph.log.last, 1)
    process.kill()
    await process.wait()
    assert await graph.log.last() < number_at(datetime.now(UTC) - timedelta(days=1))
    source = seed_source(2000, 6000, 3)

    assert await load(graph, source)

    users = [id for id in await graph.users.ids_of_logins([f"p{number}" for number in range(2000)]) if id]
    counts = await counts_of(graph, users)
    assert (len(users), sum(count.posts for count in counts)) == (2000, 6000)
    follows = source.count() - 8000
    assert sum(count.followers for count in counts) == sum(count.following for count in counts) == follows


async def test_two_concurrent_seedings_make_one_world(store_url: str, small_batches: None) -> None:
    """Two clients that seed one store at the same time append each event once."""
    graphs = [await Graph.open(store_url, CHEAP) for _ in range(2)]
    try:
        await asyncio.gather(*(load(graph, SMALL, now=BASE) for graph in graphs))
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


@pytest.mark.parametrize("calls", [12, 25])
async def test_a_partly_seeded_store_with_other_events_is_refused(
    graph: Graph, small_batches: None, calls: int
) -> None:
    """The remaining events could no longer have the numbers that the source gives them."""
    failing = await failing_graph(graph.store.url, calls, before=True)
    with pytest.raises(StoreUnavailable):
        await load(failing, SMALL, now=BASE)
    await failing.close()
    await graph.users.sign_up("somebody", "correct horse")
    with pytest.raises(SeedRefused, match="Another client wrote"):
        await load(graph, SMALL)
