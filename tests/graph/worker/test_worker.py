"""The worker: crashes, leases, retries and the watermark."""

import asyncio
import contextlib
from datetime import timedelta

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.log.events import Followed, PostPublished
from graph.log.numbers import entry_id
from graph.visibility.views import SYSTEM
from graph.worker.consumer import GROUP, MAX_DELIVERIES
from tests.graph.worker.unprojected import SOON, append, pending, read_and_die
from tests.support.graph_worlds import (
    PATIENCE,
    Open,
    archive_log,
    background,
    befriend,
    cached,
    counts_of,
    crowd,
    dead_letters,
    home,
    newest,
    people,
    reached,
)
from tests.support.stores import Crashed, Fault, Killed, Stop, runs

HOUR = timedelta(hours=1)


async def test_draining_projects_everything_and_returns_the_watermark(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    _, post = await append(graph, Followed(alice, bob), PostPublished(bob, "hi"))

    watermark = await graph.worker().drain()

    assert watermark == await graph.log.watermark() == await graph.log.last()
    assert await home(graph, alice) == [post]


async def test_an_empty_log_is_drained(graph: Graph) -> None:
    assert await graph.worker().drain() == 0
    assert await graph.worker().drain() == 0


async def test_draining_projects_many_batches(graph: Graph) -> None:
    star, *fans = await crowd(graph, 350)
    numbers = await append(graph, *(Followed(fan, star) for fan in fans))

    assert await graph.worker().drain() == numbers[-1]
    assert (await counts_of(graph, [star]))[0].followers == 349


async def test_the_watermark_waits_for_the_oldest_pending_event(graph: Graph) -> None:
    """Events that a dead worker has read hold the watermark back, whichever later events are projected."""
    alice, bob = await people(graph, "alice", "bob")
    before = await graph.worker().drain()
    [held] = await append(graph, Followed(alice, bob))
    await read_and_die(graph)
    await append(graph, Followed(bob, alice))

    async with background(graph.worker(HOUR).drain()) as draining, asyncio.timeout(PATIENCE):
        while await pending(graph) > 1 or not await graph.follows.followed_by(bob):  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)
        await reached(graph.log.watermark, held - 1)
        assert not draining.done()

    assert before <= await graph.log.watermark() == held - 1
    assert await pending(graph) == 1


async def test_events_of_a_dead_worker_are_claimed(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    await append(graph, Followed(alice, bob))
    await read_and_die(graph)

    watermark = await graph.worker(SOON).drain()

    assert watermark == await graph.log.last()
    assert list(await graph.follows.followed_by(alice)) == [bob]
    assert await pending(graph) == 0


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", ["add_follows", "write_post", "list_post", "insert", "acknowledge"])
async def test_a_worker_that_dies_at_any_step_loses_nothing(graph: Graph, another: Open, step: str, late: bool) -> None:
    """The next worker reaches the same state."""
    alice, bob = await people(graph, "alice", "bob")
    await cached(graph, alice)
    dying = await another()
    await graph.worker().drain()
    _, post = await append(graph, Followed(alice, bob), PostPublished(bob, "hi"))
    worker = dying.worker()
    Fault(dying.store, runs(step), Killed(), after=late)
    with pytest.raises(Killed):
        await worker.drain()

    await graph.worker(SOON).drain()

    assert await graph.log.watermark() == await graph.log.last()
    assert await home(graph, alice) == [post]
    assert [f.user for f in (await graph.follows.followers(SYSTEM, [bob], newest(9)))[0].items] == [alice]
    assert await dead_letters(graph) == []


async def test_several_workers_share_the_log(graph: Graph, another: Open) -> None:
    workers = [graph.worker(), (await another()).worker(), (await another()).worker()]
    star, *fans = await crowd(graph, 500)
    numbers = await append(graph, *(Followed(fan, star) for fan in fans))

    watermarks = await asyncio.gather(*(worker.drain() for worker in workers))

    assert watermarks == 3 * [numbers[-1]]
    assert (await counts_of(graph, [star]))[0].followers == 499


async def seconds_left(graph: Graph) -> int:
    """Return how many seconds the oldest lease is valid; the result is negative if the lease has expired."""
    [[_, _, idle, _]] = await graph.store.run("XPENDING", "{log}", GROUP, "-", "+", 1)
    return (HOUR - timedelta(milliseconds=idle)) // timedelta(seconds=1)


async def test_a_slow_batch_is_not_claimed(graph: Graph, another: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker renews its lease, even one that has expired, as here."""
    monkeypatch.setattr("graph.worker.consumer.RENEWALS_PER_LEASE", HOUR / timedelta(seconds=0.1))
    monkeypatch.setattr("graph.worker.worker.CLAIM_SECONDS", 0.05)
    slow = await another()
    alice, bob = await people(graph, "alice", "bob")
    await graph.worker().drain()
    await append(graph, Followed(alice, bob))
    stop = Stop(slow.store, runs("add_follows"))
    async with background(slow.worker(HOUR).drain()) as work:
        await stop.reached.wait()
        [[entry, holder, _, _]] = await graph.store.run("XPENDING", "{log}", GROUP, "-", "+", 1)
        expired = 2 * HOUR // timedelta(milliseconds=1)
        await graph.store.run("XCLAIM", "{log}", GROUP, holder, 0, entry, "IDLE", expired, "JUSTID")
        await reached(lambda: seconds_left(graph), 1)

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(graph.worker(HOUR).drain(), 0.3)
        assert list(await graph.follows.followed_by(alice)) == []

        stop.resume()
        await asyncio.wait_for(work, PATIENCE)
    assert list(await graph.follows.followed_by(alice)) == [bob]


async def test_a_slow_batch_is_not_taken_for_an_outage(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow work is interrupted and retried only while the store is unavailable."""
    monkeypatch.setattr("graph.worker.worker.OUTAGE_SECONDS", 0.0)
    alice, bob = await people(graph, "alice", "bob")
    await graph.worker().drain()
    await append(graph, Followed(alice, bob))
    worker = graph.worker()

    await worker._project_entries(await worker._events.read(graph.store))

    assert len(worker._event_retries) == 0
    assert list(await graph.follows.followed_by(alice)) == [bob]


async def test_a_running_worker_projects_new_events(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    async with background(graph.worker().run()):
        for _ in range(3):
            [post] = await append(graph, PostPublished(bob, "hi"))
            await reached(graph.log.watermark, post)
    assert len(await home(graph, bob)) == 3
    assert await home(graph, alice) == []


async def test_a_running_worker_claims_events_and_tidies_the_log(another: Open) -> None:
    graph = await another(log_retention=timedelta(0))
    alice, bob = await people(graph, "alice", "bob")
    [number] = await append(graph, Followed(alice, bob))
    await archive_log(graph)
    await read_and_die(graph)

    async with background(graph.worker(SOON).run()):
        await reached(graph.log.watermark, number)
        await reached(graph.log.trimmed, number)

    assert list(await graph.follows.followed_by(alice)) == [bob]
    assert await graph.store.run("XLEN", "{log}") == 0


async def test_a_lost_consumer_group_is_created_again_at_the_watermark(graph: Graph, raw: Redis) -> None:
    """No event is projected twice, and none is missed."""
    alice, bob = await people(graph, "alice", "bob")
    async with background(graph.worker().run()):
        await reached(graph.log.watermark, await graph.log.last())
        await raw.xgroup_destroy("{log}", GROUP)
        [number] = await append(graph, Followed(alice, bob))
        await reached(graph.log.watermark, number)
    assert list(await graph.follows.followed_by(alice)) == [bob]


async def test_the_watermark_waits_for_an_event_that_fails(graph: Graph, raw: Redis) -> None:
    """An event that succeeds at its last delivery is projected."""
    [bob] = await people(graph, "bob")
    await graph.worker().drain()
    await raw.set(keys.posts(bob), "not a sorted set")
    [failing] = await append(graph, PostPublished(bob, "1"))
    async with background(graph.worker(HOUR).drain()):
        await reached(lambda: pending(graph), 1)
        await reached(graph.log.watermark, failing - 1)
    deliveries = 0
    while deliveries < MAX_DELIVERIES - 1:
        await graph.store.run("XCLAIM", "{log}", GROUP, "other", 0, entry_id(failing))
        [[_, _, _, deliveries]] = await graph.store.run("XPENDING", "{log}", GROUP, "-", "+", 1)
    assert await graph.log.watermark() == failing - 1

    await raw.delete(keys.posts(bob))
    await graph.worker(SOON).drain()

    assert await home(graph, bob) == [failing]
    assert await dead_letters(graph) == []


async def test_an_outage_during_projection_does_not_count_as_a_delivery(graph: Graph, another: Open) -> None:
    """The worker waits for the store and retries."""
    flaky = await another()
    alice, bob = await people(graph, "alice", "bob")
    await append(graph, Followed(alice, bob))
    Fault(flaky.store, runs("add_follows"), times=2)

    await asyncio.wait_for(flaky.worker().drain(), PATIENCE)

    assert list(await graph.follows.followed_by(alice)) == [bob]
    assert await dead_letters(graph) == []


async def test_outages_during_acknowledgement_do_not_count_as_deliveries(
    another: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event does not become a dead letter, however many outages there are."""
    monkeypatch.setattr("graph.worker.retries.FIRST_SECONDS", 0.01)
    flaky = await another()
    alice, bob = await people(flaky, "alice", "bob")
    await flaky.worker().drain()
    [number] = await append(flaky, Followed(alice, bob))
    Fault(flaky.store, runs("acknowledge", entry_id(number)), times=MAX_DELIVERIES + 1)

    async with background(flaky.worker(SOON).run()):
        await reached(flaky.log.watermark, number)

    assert await dead_letters(flaky) == []


async def test_the_watermark_never_decreases(graph: Graph) -> None:
    """Neither an event that is delivered again nor a worker that starts late lowers it."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    watermark = await graph.worker().drain()
    await graph.store.run("XGROUP", "SETID", "{log}", GROUP, "0")
    await read_and_die(graph)

    with contextlib.suppress(TimeoutError):  # the worker waits for pending events, or finds that none is missing
        await asyncio.wait_for(graph.worker(timedelta(hours=1)).drain(), 0.1)

    assert await graph.log.watermark() == watermark


async def test_the_worker_projects_what_a_crashed_mutation_appended(graph: Graph, another: Open) -> None:
    dying = await another()
    alice, bob = await people(graph, "alice", "bob")
    Fault(dying.store, runs("add_follows"), Crashed())
    with pytest.raises(Crashed):
        await dying.follows.follow(alice, [bob])
    Fault(dying.store, runs("write_post"), Crashed())
    with pytest.raises(Crashed):
        await dying.posts.publish(bob, "hi")
    assert await home(graph, alice) == []

    await graph.worker().drain()

    assert len(await home(graph, alice)) == 1


@pytest.mark.parametrize("stream", [keys.LOG, keys.FANOUTS])
async def test_a_worker_that_stops_releases_what_it_was_reading(graph: Graph, another: Open, stream: str) -> None:
    """It also releases an entry whose delivery has not arrived yet. Another worker need not wait for its lease."""
    stopping = await another(fan_out_task=1)
    alice, *others = await crowd(graph, 4)
    await graph.commit([Followed(other, alice) for other in others])
    await graph.worker().drain()
    [post] = await append(stopping, PostPublished(alice, "hi"))
    read = Stop(stopping.store, lambda command: command[0] == "XREADGROUP" and stream in command, after=True)

    async with background(stopping.worker(timedelta(hours=1)).run()):
        await read.reached.wait()
        await reached(lambda: pending(graph, stream), 1)

    assert await asyncio.wait_for(graph.worker(timedelta(hours=1)).drain(), PATIENCE) == post
