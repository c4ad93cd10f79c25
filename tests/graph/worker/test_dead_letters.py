"""Dead letters: events that fail, that cannot be read, or that kill their worker."""

import asyncio
import contextlib
from datetime import timedelta

from redis.asyncio import Redis

from graph import Graph, keys
from graph.log.events import Followed, PostPublished
from graph.log.numbers import entry_id
from graph.worker.consumer import GROUP, MAX_DELIVERIES
from tests.graph.worker.unprojected import SOON, append, read_and_die
from tests.support.graph_worlds import PATIENCE, Open, archive_log, background, cached, home, people
from tests.support.stores import Fault, Killed, Stop, runs


async def test_an_unreadable_event_becomes_a_dead_letter(graph: Graph, raw: Redis) -> None:
    """After five deliveries. All other events are projected."""
    alice, bob = await people(graph, "alice", "bob")
    odd = await graph.log.last() + 1
    await raw.xadd("{log}", {"kind": "Followed", "actor": str(alice), "body": "{"}, id=entry_id(odd))
    await append(graph, Followed(alice, bob))
    worker = graph.worker(SOON)

    watermark = await worker.drain()

    assert watermark == await graph.log.last()
    assert list(await graph.follows.followed_by(alice)) == [bob]
    [letter] = await graph.dead_letters.oldest()
    assert (letter["entry"], letter["kind"], letter["body"]) == (entry_id(odd), "Followed", "{")
    assert "5 deliveries" in letter["reason"]


async def test_an_event_that_fails_does_not_block_its_batch(graph: Graph, raw: Redis) -> None:
    """It becomes a dead letter after five deliveries. The others are projected at once."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await graph.worker().drain()
    await raw.set(keys.posts(bob), "not a sorted set")
    first, failing, last = await append(
        graph, PostPublished(alice, "1"), PostPublished(bob, "2"), PostPublished(carol, "3")
    )
    await cached(graph, alice, carol)
    worker = graph.worker(SOON)

    watermark = await worker.drain()

    assert watermark == last
    assert (await home(graph, alice), await home(graph, carol)) == ([first], [last])
    assert [letter["entry"] for letter in await graph.dead_letters.oldest()] == [entry_id(failing)]


async def test_the_dead_letter_of_a_deleted_post_is_removed(graph: Graph, raw: Redis) -> None:
    """Its text does not outlive the post."""
    [alice] = await people(graph, "alice")
    await raw.set(keys.posts(alice), "not a sorted set")
    [post] = await append(graph, PostPublished(alice, "regret"))
    worker = graph.worker(SOON)
    await worker.drain()
    assert len(await graph.dead_letters.oldest()) == 1
    await raw.delete(keys.posts(alice))

    await graph.posts.delete(alice, post)
    await worker.drain()
    await archive_log(graph)
    await graph.housekeeping.tidy()

    assert await graph.dead_letters.oldest() == []


async def test_an_event_that_kills_its_worker_becomes_the_only_dead_letter(graph: Graph, another: Open) -> None:
    """The batch dies with its worker several times, and its other events are projected."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await graph.worker().drain()
    harmless, deadly = await append(graph, Followed(alice, bob), Followed(alice, carol))
    for _ in range(MAX_DELIVERIES - 1):
        await read_and_die(graph)
        await graph.store.run(
            "XCLAIM", "{log}", GROUP, "dead", 0, entry_id(harmless), entry_id(deadly), "RETRYCOUNT", 4
        )
    dying = await another()
    Fault(dying.store, runs("add", str(carol)), Killed())
    with contextlib.suppress(Killed):
        await dying.worker(timedelta(0)).drain()

    await graph.worker(timedelta(0)).drain()

    assert bob in await graph.follows.followed_by(alice)
    assert [letter["entry"] for letter in await graph.dead_letters.oldest()] == [entry_id(deadly)]


async def test_two_workers_add_a_dead_letter_once(graph: Graph, another: Open, raw: Redis) -> None:
    """Both find the event with too many deliveries at the same time."""
    await graph.worker().drain()
    await raw.xadd("{log}", {"kind": "Followed"}, id=entry_id(1))
    other = await another()
    await read_and_die(graph)
    for _ in range(MAX_DELIVERIES):
        await graph.store.run("XCLAIM", "{log}", GROUP, "dead", 0, entry_id(1))
    stop = Stop(other.store, runs("dead_letter"))
    async with background(other.worker(timedelta(0)).drain()) as work:
        await stop.reached.wait()
        await graph.worker(timedelta(0)).drain()
        stop.resume()
        await asyncio.wait_for(work, PATIENCE)

    assert len(await graph.dead_letters.oldest()) == 1


async def test_interrupted_deliveries_do_not_make_a_dead_letter(graph: Graph, raw: Redis) -> None:
    """Only failed deliveries count."""
    alice, bob = await people(graph, "alice", "bob")
    await graph.worker().drain()
    [number] = await append(graph, Followed(alice, bob))
    for _ in range(8):
        worker = graph.worker(timedelta(milliseconds=1))
        entries = await worker._events.read(graph.store) or await worker._events.claim()
        with contextlib.suppress(InterruptedError):
            async with worker._events.lease([entry for entry, _ in entries]):
                raise InterruptedError
        await worker._events.release([entry_id(number)])

    assert await graph.worker(timedelta(0)).drain() == number
    assert bob in await graph.follows.followed_by(alice)
    assert await raw.xlen(keys.DEAD) == 0
