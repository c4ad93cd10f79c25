"""The worker: everything is projected, whoever dies; what cannot be is set aside; the mark never lies."""

import asyncio
import contextlib
from datetime import timedelta

import pytest
from redis.asyncio import Redis

from graph import Graph
from graph.log.events import EventBody, Followed, PostPublished
from graph.log.log import entry_id
from graph.model import MAX_NUMBER
from graph.worker.consumer import GROUP, MAX_DELIVERIES, create_groups
from tests.support.graph_worlds import (
    PATIENCE,
    Open,
    background,
    befriend,
    cached,
    crowd,
    home,
    many_posts,
    newest,
    people,
    posts,
    reached,
)
from tests.support.stores import Crashed, Fault, Killed, Stop, runs, sends

SOON = timedelta(milliseconds=20)


async def append(graph: Graph, *bodies: EventBody) -> list[int]:
    """Commit events that nobody has projected yet, as a request does that dies at once."""
    return [event.number for event in await graph.log.append(bodies)]


async def pending(graph: Graph) -> int:
    [count, *_] = await graph.store.run("XPENDING", "{log}", GROUP)
    return int(count)


async def take(graph: Graph, consumer: str = "dead") -> None:
    """Take all new events from the log and die."""
    await create_groups(graph.store, graph.log)
    await graph.store.run("XREADGROUP", "GROUP", GROUP, consumer, "STREAMS", "{log}", ">")


async def test_draining_projects_everything_and_gives_the_mark(graph: Graph) -> None:
    """What requests left undone is done, and the mark is the last number."""
    alice, bob = await people(graph, "alice", "bob")
    _, post = await append(graph, Followed(alice, bob), PostPublished(bob, "hi"))

    mark = await graph.worker().drain()

    assert mark == await graph.log.watermark() == await graph.log.last()
    assert await home(graph, alice) == [post]


async def test_an_empty_log_is_drained(graph: Graph) -> None:
    """Even before anything happened."""
    assert await graph.worker().drain() == 0
    assert await graph.worker().drain() == 0


async def test_draining_goes_through_any_number_of_events(graph: Graph) -> None:
    """Many batches, one mark."""
    star, *fans = await crowd(graph, 350)
    numbers = await append(graph, *(Followed(fan, star) for fan in fans))

    assert await graph.worker().drain() == numbers[-1]
    assert (await graph.users.counts([star]))[0].followers == 349


async def test_the_mark_waits_for_the_oldest_open_event(graph: Graph) -> None:
    """Events that a dead worker took hold the mark right below themselves, whatever is done above."""
    alice, bob = await people(graph, "alice", "bob")
    before = await graph.worker().drain()
    [held] = await append(graph, Followed(alice, bob))
    await take(graph)
    await posts(graph, bob, "later")

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(graph.worker(timedelta(hours=1)).drain(), 0.1)

    assert before <= await graph.log.watermark() == held - 1
    assert await pending(graph) == 1


async def test_events_of_a_dead_worker_are_taken_over(graph: Graph) -> None:
    """After they have waited long enough, another worker finishes them."""
    alice, bob = await people(graph, "alice", "bob")
    await append(graph, Followed(alice, bob))
    await take(graph)

    mark = await graph.worker(SOON).drain()

    assert mark == await graph.log.last()
    assert list(await graph.follows.followed_by(alice)) == [bob]
    assert await pending(graph) == 0


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", ["add", "write_post", "list_post", "insert", "acknowledge"])
async def test_a_worker_that_dies_at_any_step_loses_nothing(graph: Graph, another: Open, step: str, late: bool) -> None:
    """The next one ends in the same state."""
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
    assert [f.user for f in (await graph.follows.followers([bob], newest(9)))[0].items] == [alice]
    assert await graph.dead_letters.oldest() == []


async def test_several_workers_share_the_log(graph: Graph, another: Open) -> None:
    """Together they project everything once or more, and all see it drained."""
    workers = [graph.worker(), (await another()).worker(), (await another()).worker()]
    star, *fans = await crowd(graph, 500)
    numbers = await append(graph, *(Followed(fan, star) for fan in fans))

    marks = await asyncio.gather(*(worker.drain() for worker in workers))

    assert marks == 3 * [numbers[-1]]
    assert (await graph.users.counts([star]))[0].followers == 499


async def test_a_slow_batch_is_not_taken_over(graph: Graph, another: Open) -> None:
    """A heartbeat tells the others that somebody is at it."""
    slow = await another()
    alice, bob = await people(graph, "alice", "bob")
    await graph.worker().drain()
    await append(graph, Followed(alice, bob))
    stop, beat = Stop(slow.store, runs("add")), Stop(slow.store, sends("XCLAIM"), after=True)
    beat.resume()
    async with background(slow.worker(timedelta(milliseconds=300)).drain()) as work:
        await stop.reached.wait()
        await beat.reached.wait()

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(graph.worker(timedelta(milliseconds=300)).drain(), 0.6)
        assert list(await graph.follows.followed_by(alice)) == []

        stop.resume()
        await asyncio.wait_for(work, PATIENCE)
    assert list(await graph.follows.followed_by(alice)) == [bob]


async def test_a_running_worker_follows_the_log(graph: Graph) -> None:
    """What is appended is projected while it runs, and cancelling ends it."""
    alice, bob = await people(graph, "alice", "bob")
    async with background(graph.worker().run()):
        for _ in range(3):
            [post] = await append(graph, PostPublished(bob, "hi"))
            await reached(graph.log.watermark, post)
    assert len(await home(graph, bob)) == 3
    assert await home(graph, alice) == []


async def test_a_running_worker_takes_over_and_tidies(another: Open) -> None:
    """Its housekeeping finishes what others left, and trims what is beyond the retention."""
    graph = await another(log_retention=timedelta(0))
    alice, bob = await people(graph, "alice", "bob")
    [number] = await append(graph, Followed(alice, bob))
    await take(graph)

    async with background(graph.worker(SOON).run()):
        await reached(graph.log.watermark, number)
        await reached(graph.log.trimmed, number)

    assert list(await graph.follows.followed_by(alice)) == [bob]
    assert await graph.store.run("XLEN", "{log}") == 0


async def test_a_lost_consumer_group_is_made_again_where_projections_stand(graph: Graph, raw: Redis) -> None:
    """Nothing is projected from the beginning again, nothing is left out."""
    alice, bob = await people(graph, "alice", "bob")
    async with background(graph.worker().run()):
        await reached(graph.log.watermark, await graph.log.last())
        await raw.xgroup_destroy("{log}", GROUP)
        [number] = await append(graph, Followed(alice, bob))
        await reached(graph.log.watermark, number)
    assert list(await graph.follows.followed_by(alice)) == [bob]


async def test_what_cannot_be_read_becomes_a_dead_letter(graph: Graph, raw: Redis) -> None:
    """An entry of a later version is set aside after five deliveries; everything else goes on."""
    alice, bob = await people(graph, "alice", "bob")
    odd = await graph.log.last() + 1
    await raw.xadd("{log}", {"event": '["Reposted",{"post":1}]'}, id=entry_id(odd))
    await append(graph, Followed(alice, bob))
    worker = graph.worker(SOON)

    mark = await worker.drain()

    assert mark == await graph.log.last()
    assert list(await graph.follows.followed_by(alice)) == [bob]
    [letter] = await graph.dead_letters.oldest()
    assert (letter["entry"], letter["event"]) == (entry_id(odd), '["Reposted",{"post":1}]')
    assert "5 deliveries" in letter["reason"]


async def test_a_poisoned_event_does_not_hold_up_its_batch(graph: Graph, raw: Redis) -> None:
    """What fails is tried five times and set aside; its neighbours are projected at once."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await graph.worker().drain()
    await raw.set(f"posts:{{{bob}}}", "poison")
    first, poisoned, last = await append(
        graph, PostPublished(alice, "1"), PostPublished(bob, "2"), PostPublished(carol, "3")
    )
    await cached(graph, alice, carol)
    worker = graph.worker(SOON)

    mark = await worker.drain()

    assert mark == last
    assert (await home(graph, alice), await home(graph, carol)) == ([first], [last])
    assert [letter["entry"] for letter in await graph.dead_letters.oldest()] == [entry_id(poisoned)]


async def test_a_dead_letter_of_a_deleted_post_is_thrown_away(graph: Graph, raw: Redis) -> None:
    """A text that could not be projected does not outlive its post among the dead letters."""
    [alice] = await people(graph, "alice")
    await raw.set(f"posts:{{{alice}}}", "poison")
    [post] = await append(graph, PostPublished(alice, "regret"))
    worker = graph.worker(SOON)
    await worker.drain()
    assert len(await graph.dead_letters.oldest()) == 1
    await raw.delete(f"posts:{{{alice}}}")

    await graph.posts.delete(alice, post)
    await worker.drain()
    await graph.housekeeping.tidy()

    assert await graph.dead_letters.oldest() == []


async def test_a_event_that_kills_its_worker_takes_no_sound_ones_with_it(graph: Graph, another: Open) -> None:
    """A whole batch dies with its worker again and again; only the deadly event is set aside."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await graph.worker().drain()
    sound, deadly = await append(graph, Followed(alice, bob), Followed(alice, carol))
    for _ in range(MAX_DELIVERIES - 1):
        await take(graph)
        await graph.store.run("XCLAIM", "{log}", GROUP, "dead", 0, entry_id(sound), entry_id(deadly), "RETRYCOUNT", 4)
    dying = await another()
    Fault(dying.store, runs("add", str(carol)), Killed())
    with contextlib.suppress(Killed):
        await dying.worker(timedelta(0)).drain()

    await graph.worker(timedelta(0)).drain()

    assert bob in await graph.follows.followed_by(alice)
    assert [letter["entry"] for letter in await graph.dead_letters.oldest()] == [entry_id(deadly)]


async def test_the_mark_waits_for_a_poisoned_event(graph: Graph, raw: Redis) -> None:
    """Until it is set aside, the mark stays below it; if it recovers in time, it is projected."""
    [bob] = await people(graph, "bob")
    await graph.worker().drain()
    await raw.set(f"posts:{{{bob}}}", "poison")
    [poisoned] = await append(graph, PostPublished(bob, "1"))
    for _ in range(MAX_DELIVERIES - 2):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(graph.worker(timedelta(hours=1)).drain(), 0.05)
        await graph.store.run("XCLAIM", "{log}", GROUP, "other", 0, entry_id(poisoned))
    assert await graph.log.watermark() == poisoned - 1

    await raw.delete(f"posts:{{{bob}}}")
    await graph.worker(SOON).drain()

    assert await home(graph, bob) == [poisoned]
    assert await graph.dead_letters.oldest() == []


async def test_two_workers_bury_a_event_once(graph: Graph, another: Open, raw: Redis) -> None:
    """Both may find it delivered too often at the same moment."""
    await graph.worker().drain()
    await raw.xadd("{log}", {"event": "?"}, id=entry_id(1))
    other = await another()
    await take(graph)
    for _ in range(MAX_DELIVERIES):
        await graph.store.run("XCLAIM", "{log}", GROUP, "dead", 0, entry_id(1))
    stop = Stop(other.store, runs("dead_letter"))
    async with background(other.worker(timedelta(0)).drain()) as work:
        await stop.reached.wait()
        await graph.worker(timedelta(0)).drain()
        stop.resume()
        await asyncio.wait_for(work, PATIENCE)

    assert len(await graph.dead_letters.oldest()) == 1


async def test_an_outage_while_projecting_is_no_delivery(graph: Graph, another: Open) -> None:
    """The worker waits for the store and goes on where it was."""
    flaky = await another()
    alice, bob = await people(graph, "alice", "bob")
    await append(graph, Followed(alice, bob))
    Fault(flaky.store, runs("add"), times=2)

    await asyncio.wait_for(flaky.worker().drain(), PATIENCE)

    assert list(await graph.follows.followed_by(alice)) == [bob]
    assert await graph.dead_letters.oldest() == []


async def test_outages_while_acknowledging_are_no_deliveries(another: Open) -> None:
    """A sound event never becomes a dead letter because the store was away, however often."""
    flaky = await another()
    alice, bob = await people(flaky, "alice", "bob")
    await flaky.worker().drain()
    [number] = await append(flaky, Followed(alice, bob))
    Fault(flaky.store, runs("acknowledge", entry_id(number)), times=MAX_DELIVERIES + 1)

    async with background(flaky.worker(SOON).run()):
        await reached(flaky.log.watermark, number)

    assert await flaky.dead_letters.oldest() == []


async def test_tidying_never_goes_above_the_mark(another: Open) -> None:
    """Whatever the retention, what is not projected stays in the log."""
    graph = await another(log_retention=timedelta(0))
    alice, bob = await people(graph, "alice", "bob")
    worker = graph.worker()
    await graph.housekeeping.tidy()
    assert [event.number async for event in graph.log.replay(0, MAX_NUMBER)] == [alice, bob]
    mark = await worker.drain()
    number, *_ = later = await append(graph, Followed(alice, bob), Followed(bob, alice))

    await graph.housekeeping.tidy()

    assert [event.number async for event in graph.log.replay(0, MAX_NUMBER)] == later
    assert await graph.log.trimmed() == mark < number
    assert await worker.drain() == later[-1]
    await graph.housekeeping.tidy()
    assert await graph.log.trimmed() == later[-1]
    assert await graph.store.run("XLEN", "{log}") == 0


async def test_tidying_keeps_what_is_within_the_retention(graph: Graph) -> None:
    """A day's events stay."""
    [alice] = await people(graph, "alice")
    written = await many_posts(graph, alice, 10)
    worker = graph.worker()
    await worker.drain()

    await graph.housekeeping.tidy()

    assert [event.number async for event in graph.log.replay(0, MAX_NUMBER)] == [alice, *written]
    assert await graph.log.trimmed() == 0


async def test_the_mark_never_goes_back(graph: Graph) -> None:
    """Not for an event that is taken again, nor for a worker that starts late."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    mark = await graph.worker().drain()
    await graph.store.run("XGROUP", "SETID", "{log}", GROUP, "0")
    await take(graph)

    with contextlib.suppress(TimeoutError):  # it may wait for what is open, or see that nothing is missing
        await asyncio.wait_for(graph.worker(timedelta(hours=1)).drain(), 0.1)

    assert await graph.log.watermark() == mark


async def test_a_crashed_request_is_finished_by_the_worker(graph: Graph, another: Open) -> None:
    """Committed is committed: the follow and the post appear once the worker has passed."""
    dying = await another()
    alice, bob = await people(graph, "alice", "bob")
    Fault(dying.store, runs("add"), Crashed())
    with pytest.raises(Crashed):
        await dying.follows.follow(alice, [bob])
    Fault(dying.store, runs("write_post"), Crashed())
    with pytest.raises(Crashed):
        await dying.posts.publish(bob, "hi")
    assert await home(graph, alice) == []

    await graph.worker().drain()

    assert len(await home(graph, alice)) == 1
