"""A shard does not answer a worker: all other work continues, and nothing is repeated needlessly or given up."""

import asyncio
from collections.abc import Awaitable, Sequence
from datetime import timedelta

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.errors import StoreUnavailable
from graph.home.pacing import Pace
from graph.log.events import Followed, PostPublished
from graph.log.numbers import entry_id
from graph.projections.mode import Mode
from graph.store.commands import Command
from graph.tasks import RETRY_SECONDS
from graph.worker.consumer import GROUP, MAX_DELIVERIES
from graph.worker.retries import RetryGroup, Work, run_each
from tests.graph.home.test_fan_out import served, star_with_fans
from tests.graph.worker.unprojected import SOON, append, pending
from tests.support.graph_worlds import PATIENCE, Open, background, crowd, dead_letters, people, reached
from tests.support.stores import HookedStore, LostShard, Stop, of_users, runs

OUTAGE_SECONDS = 0.6
MOST_REFUSED = 40
SHORT = timedelta(seconds=0.3)
LIMIT = 0.05
HAND_OVERS = 4


async def test_the_other_events_of_a_batch_are_projected(graph: Graph, another: Open) -> None:
    """While the shard is lost, its events are seldom retried. Afterwards they are projected."""
    partial = await another()
    alice, bob, *others = await crowd(graph, 30)
    await graph.worker().drain()
    shard = LostShard(partial.store, of_users(alice))
    [first, *_, last] = await append(
        graph, Followed(alice, bob), *(Followed(other, bob) for other in others), Followed(bob, alice)
    )

    async with background(partial.worker().run()):
        await reached(lambda: follows(graph, others[-1], bob), 1)
        [later] = await append(graph, Followed(others[0], others[1]))
        await reached(lambda: follows(graph, others[0], others[1]), 1)
        await asyncio.sleep(OUTAGE_SECONDS)
        assert await graph.log.watermark() == first - 1
        assert shard.refused < MOST_REFUSED
        shard.heal()
        await reached(graph.log.watermark, later)

    assert list(await graph.follows.followed_by(alice)) == [bob]
    assert list(await graph.follows.followed_by(bob)) == [alice]
    assert last < later


async def follows(graph: Graph, follower: int, followee: int) -> int:
    return followee in await graph.follows.followed_by(follower)


async def refusals(shard: LostShard) -> int:
    return shard.refused


async def test_a_fan_out_reaches_the_followers_on_other_shards(another: Open, raw: Redis) -> None:
    """The tasks of a fan-out are added once, and continue with the followers who could not be reached."""
    graph, partial = await another(fan_out_task=10), await another(fan_out_task=10)
    star, fans = await star_with_fans(graph, raw, 34)
    shard = LostShard(partial.store, of_users(fans[5]))
    [post] = await append(graph, PostPublished(star, "hi"))

    async with background(partial.worker().run()):
        await reached(lambda: count(served(raw, fans, post)), len(fans) - 1)
        await asyncio.sleep(OUTAGE_SECONDS)
        assert await raw.zcard(keys.OPEN_FANOUTS) == 1
        assert shard.refused < MOST_REFUSED
        shard.heal()
        await reached(graph.log.watermark, post)

    assert await served(raw, fans, post) == fans
    assert (await raw.xinfo_stream(keys.FANOUTS))["entries-added"] == 4


async def count(found: Awaitable[list[int]]) -> int:
    return len(await found)


async def negative(number: Awaitable[int]) -> int:
    return -await number


async def test_a_short_fan_out_becomes_a_task(graph: Graph, another: Open, raw: Redis) -> None:
    """A short fan-out becomes a task, so that its event does not wait for the lost shard."""
    partial = await another()
    star, fans = await star_with_fans(graph, raw, 5)
    LostShard(partial.store, of_users(fans[0]))
    [post] = await append(graph, PostPublished(star, "hi"))

    async with background(partial.worker().run()):
        await reached(lambda: count(served(raw, fans, post)), len(fans) - 1)
        await reached(lambda: negative(pending(graph)), 0)

        assert await raw.zcard(keys.OPEN_FANOUTS) == 1
        assert await graph.log.watermark() < post


async def test_an_event_that_is_projected_again_adds_no_tasks(another: Open, raw: Redis) -> None:
    """As long as the watermark has not passed the event, no tasks are added again, even if all are done."""
    graph = await another(fan_out_task=10)
    star, _ = await star_with_fans(graph, raw, 34)
    await append(graph, PostPublished(star, "held"))
    worker = graph.worker(timedelta(hours=1))
    entries = await worker._events.read(graph.store)
    event = await graph.log.get(await graph.log.last())
    assert event is not None
    project = graph.projections.project

    await project([event], Mode.WORKER)
    while tasks := await worker._tasks.read(graph.store):
        await worker._run_tasks(tasks)
    await project([event], Mode.WORKER)

    assert (await raw.xinfo_stream(keys.FANOUTS))["entries-added"] == 4
    assert await worker._project_entries(entries) == event.number
    assert await raw.exists(keys.ADDED_FANOUTS) == 0


async def test_a_worker_leaves_what_it_cannot_reach_to_another(graph: Graph, another: Open) -> None:
    """After three leases without progress, another worker takes over."""
    partial = await another()
    alice, bob = await people(graph, "alice", "bob")
    await graph.worker().drain()
    LostShard(partial.store, of_users(alice))
    [number] = await append(graph, Followed(alice, bob))

    async with background(partial.worker(SHORT).run()):
        await reached(lambda: pending(graph), 1)
        async with background(graph.worker(SHORT).run()):
            await reached(graph.log.watermark, number)

    assert list(await graph.follows.followed_by(alice)) == [bob]


async def test_a_worker_that_hangs_loses_its_lease(graph: Graph, another: Open) -> None:
    """A worker that hangs loses its lease, even though it could still renew the lease."""
    hanging = await another()
    alice, bob = await people(graph, "alice", "bob")
    await graph.worker().drain()
    stop = Stop(hanging.store, runs("add_follows"))
    [number] = await append(graph, Followed(alice, bob))

    async with background(hanging.worker(SHORT).run()):
        await stop.reached.wait()
        async with background(graph.worker(SHORT).run()):
            await reached(graph.log.watermark, number)
        stop.resume()


async def test_an_outage_never_makes_a_dead_letter(graph: Graph, another: Open, raw: Redis) -> None:
    """The event never becomes a dead letter, however often it is given up and claimed again."""
    partial = await another()
    alice, bob = await people(graph, "alice", "bob")
    await graph.worker().drain()
    shard = LostShard(partial.store, of_users(alice))
    [number] = await append(graph, Followed(alice, bob))

    async with background(partial.worker(SOON).run()):
        await reached(lambda: refusals(shard), 4 * MAX_DELIVERIES)
        shard.heal()
        await reached(graph.log.watermark, number)

    assert await dead_letters(graph) == []
    assert list(await graph.follows.followed_by(alice)) == [bob]


async def test_a_stopped_worker_releases_what_it_retries(graph: Graph, another: Open) -> None:
    """Other workers need not wait for the lease, and the delivery is not counted."""
    partial = await another()
    alice, bob = await people(graph, "alice", "bob")
    await graph.worker().drain()
    shard = LostShard(partial.store, of_users(alice))
    [number] = await append(graph, Followed(alice, bob))
    async with background(partial.worker(timedelta(hours=1)).run()):
        await reached(lambda: refusals(shard), 3)

    [[entry, _, _, deliveries]] = await graph.store.run("XPENDING", keys.LOG, GROUP, "-", "+", 10)

    assert (entry, deliveries) == (entry_id(number), 0)
    assert await graph.worker(timedelta(hours=1)).drain() == number


async def test_deliveries_during_an_outage_do_not_add_up(
    graph: Graph, another: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Two workers encounter a shard that hangs, and repeatedly hand its events over to each other.

    A worker that was busy for a whole lease loses it, so another delivery may count until that worker sees the outage.
    """
    monkeypatch.setattr("graph.worker.retries.GROUPS", 1)
    alice, *others = await crowd(graph, 50)
    await graph.worker().drain()
    workers = [await another() for _ in range(2)]
    for each in workers:
        LostShard(each.store, of_users(alice), seconds=0.5)
    most = 0

    async with background(workers[0].worker(SHORT).run()), background(workers[1].worker(SHORT).run()):
        for other in others:
            await append(graph, Followed(alice, other))
            await asyncio.sleep(0.2)
            most = max(most, *await deliveries(graph))
            if caplog.text.count("have been left to other workers") >= HAND_OVERS:
                break

    assert caplog.text.count("have been left to other workers") >= HAND_OVERS
    assert most < HAND_OVERS
    assert await dead_letters(graph) == []


async def deliveries(graph: Graph) -> list[int]:
    rows = await graph.store.run("XPENDING", keys.LOG, GROUP, "-", "+", 1000)
    return [0, *(row[3] for row in rows)]


async def test_a_cancelled_retry_is_released_to_the_end(graph: Graph, another: Open) -> None:
    """The retry is released, even if the store answers after the cancellation was repeated."""
    partial = await another()
    assert isinstance(partial.store, HookedStore)
    alice, bob = await people(graph, "alice", "bob")
    await graph.worker().drain()
    shard = LostShard(partial.store, of_users(alice))
    [number] = await append(graph, Followed(alice, bob))

    async def slowly(commands: Sequence[Command]) -> None:
        if commands and commands[0][0] in {"XPENDING", "XCLAIM"}:
            await asyncio.sleep(3 * RETRY_SECONDS)

    async with background(partial.worker(timedelta(hours=1)).run()):
        await reached(lambda: refusals(shard), 3)
        partial.store.before.append(slowly)

    assert await graph.worker(timedelta(hours=1)).drain() == number


async def test_a_worker_with_many_retries_takes_no_further_entries(
    graph: Graph, another: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker takes further entries once some retries succeed."""
    monkeypatch.setattr("graph.worker.worker.MOST_EVENTS", 2)
    partial = await another()
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await graph.worker().drain()
    shard = LostShard(partial.store, of_users(alice))
    await append(graph, Followed(alice, bob), Followed(alice, carol))

    async with background(partial.worker().run()):
        await reached(lambda: refusals(shard), 5)
        [number] = await append(graph, Followed(bob, carol))
        await asyncio.sleep(OUTAGE_SECONDS / 3)
        assert await pending(graph) == 2
        assert not await follows(graph, bob, carol)
        shard.heal()
        await reached(graph.log.watermark, number)


async def test_an_entry_that_fails_for_another_reason_is_not_held(graph: Graph) -> None:
    """The entry can be claimed while the other entries of its group are retried."""
    alice, bob = await people(graph, "alice", "bob")
    await graph.worker().drain()
    failing, hanging = map(entry_id, await append(graph, Followed(alice, bob), Followed(bob, alice)))
    worker = graph.worker(SHORT)
    await worker._events.read(graph.store)

    async def fail(_: Pace) -> None:
        raise ValueError

    async def hang(pace: Pace) -> None:
        pace.after([])
        raise StoreUnavailable("an outage of the test")

    await worker._event_retries.add([Work(failing, fail), Work(hanging, hang)])
    async with asyncio.timeout(PATIENCE):
        while not (claimed := await worker._events.claim()):  # noqa: ASYNC110 - the store sends no notification
            await asyncio.sleep(SHORT.total_seconds())

    assert [entry for entry, _ in claimed] == [failing]
    await worker._event_retries.close()


async def test_waits_for_the_pace_do_not_count_as_an_outage(graph: Graph) -> None:
    class Slow(Pace):
        async def before(self, viewers: Sequence[int]) -> None:
            await asyncio.sleep(4 * LIMIT)

    async def run(pace: Pace) -> None:
        await pace.before([])
        pace.after([])
        await asyncio.sleep(hanging)

    hanging = 0.0
    assert await run_each([Work("1-0", run)], Slow(), LIMIT) == (["1-0"], [])
    hanging = 60.0
    [], [interrupted] = await run_each([Work("1-0", run)], Slow(), LIMIT)
    assert interrupted.entry == "1-0"


async def test_a_worker_does_not_wait_again_for_a_shard_that_hangs(
    another: Open, raw: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the worker retries an entry, later events and tasks continue without the shard."""
    monkeypatch.setattr("graph.worker.worker.OUTAGE_SECONDS", 0.1)
    monkeypatch.setattr("graph.home.fan_out.SHARD_SECONDS", 0.1)
    graph = await another()
    star, fans = await star_with_fans(graph, raw, 5)
    [post] = await append(graph, PostPublished(star, "hi"))
    worker = graph.worker(timedelta(hours=1))
    entries = await worker._events.read(graph.store)
    worker._event_retries._groups[asyncio.create_task(asyncio.sleep(60))] = RetryGroup([Work("1-0", hang)])
    shard = LostShard(graph.store, of_users(fans[0]), seconds=60)

    async with asyncio.timeout(PATIENCE):
        await worker._run_tasks([("1-0", ["post", str(post), "author", str(star)])])
        assert await served(raw, fans, post) == fans[1:]
        [late] = await append(graph, PostPublished(fans[1], "late"))
        await worker._project_entries([*entries, *await worker._events.read(graph.store)])
    assert str(late) in await raw.zrange(keys.posts(fans[1]), 0, -1)
    shard.heal()
    await worker._close()


async def hang(_: Pace) -> None:
    await asyncio.Event().wait()


async def test_a_task_continues_where_an_outage_stopped_it(another: Open, raw: Redis) -> None:
    """Followers who have the post do not get it again. A run that reaches no follower does not count as progress."""
    graph = await another()
    assert isinstance(graph.store, HookedStore)
    star, fans = await star_with_fans(graph, raw, 5)
    [post] = await append(graph, PostPublished(star, "hi"))
    LostShard(graph.store, of_users(fans[0]))
    work = graph.worker()._work_on("1-0", ["post", str(post), "author", str(star)])
    inserted = 0
    progress: list[int] = []

    async def note(commands: Sequence[Command]) -> None:
        nonlocal inserted
        inserted += sum(keys.home(fans[1]) in command for command in commands)

    class Noted(Pace):
        meets_outage = True

        def after(self, viewers: Sequence[int]) -> None:
            progress.append(len(viewers))

    graph.store.before.append(note)
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await work.run(Noted())

    assert inserted == 1
    assert progress == [len(fans)]


async def test_a_task_does_not_wait_for_a_shard_that_is_known_to_hang(another: Open, raw: Redis) -> None:
    """The task delivers its first chunk at once, except to followers on this shard."""
    graph = await another()
    star, fans = await star_with_fans(graph, raw, 5)
    [post] = await append(graph, PostPublished(star, "hi"))
    LostShard(graph.store, of_users(fans[0]), seconds=60)
    pace = Pace()
    pace.meets_outage = True

    async with asyncio.timeout(PATIENCE):
        with pytest.raises(StoreUnavailable):
            await graph.fan_outs.work("1-0", ["post", str(post), "author", str(star)], GROUP)(pace)

    assert await served(raw, fans, post) == fans[1:]
