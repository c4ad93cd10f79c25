"""Dead letters: events that fail, cannot be read, or kill their worker."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.log.events import Followed, PostPublished
from graph.log.numbers import entry_id
from graph.worker.consumer import GROUP, MAX_DELIVERIES
from tests.graph.home.test_fan_out import served, star_with_fans
from tests.graph.worker.unprojected import SOON, append, read_and_die
from tests.support.graph_worlds import (
    PATIENCE,
    Open,
    archive_log,
    background,
    cached,
    dead_letters,
    home,
    people,
    posts,
    reached,
)
from tests.support.stores import Fault, Killed, Stop, runs


async def test_an_unreadable_event_becomes_a_dead_letter(graph: Graph, raw: Redis) -> None:
    """The event becomes a dead letter after five deliveries. All other events are projected."""
    alice, bob = await people(graph, "alice", "bob")
    odd = await graph.log.last() + 1
    await raw.xadd("{log}", {"kind": "Followed", "actor": str(alice), "body": "{"}, id=entry_id(odd))
    await append(graph, Followed(alice, bob))
    worker = graph.worker(SOON)

    watermark = await worker.drain()

    assert watermark == await graph.log.last()
    assert list(await graph.follows.followed_by(alice)) == [bob]
    [letter] = await dead_letters(graph)
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
    assert [letter["entry"] for letter in await dead_letters(graph)] == [entry_id(failing)]


async def test_the_dead_letter_of_a_deleted_post_is_removed(graph: Graph, raw: Redis) -> None:
    """Its text does not outlive the post."""
    [alice] = await people(graph, "alice")
    await raw.set(keys.posts(alice), "not a sorted set")
    [post] = await append(graph, PostPublished(alice, "regret"))
    worker = graph.worker(SOON)
    await worker.drain()
    assert len(await dead_letters(graph)) == 1
    await raw.delete(keys.posts(alice))

    await graph.posts.delete(alice, post)
    await worker.drain()
    await archive_log(graph)
    await graph.housekeeping.tidy()

    assert await dead_letters(graph) == []


async def test_an_event_that_kills_its_worker_becomes_the_only_dead_letter(graph: Graph, another: Open) -> None:
    """The batch fails with its worker several times, and its other events are projected."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await graph.worker().drain()
    harmless, deadly = await append(graph, Followed(alice, bob), Followed(alice, carol))
    for _ in range(MAX_DELIVERIES - 1):
        await read_and_die(graph)
        await graph.store.run(
            "XCLAIM", "{log}", GROUP, "dead", 0, entry_id(harmless), entry_id(deadly), "RETRYCOUNT", 4
        )
    dying = await another()
    Fault(dying.store, runs("add_follows", str(carol)), Killed())
    with contextlib.suppress(Killed):
        await dying.worker(timedelta(0)).drain()

    await graph.worker(timedelta(0)).drain()

    assert bob in await graph.follows.followed_by(alice)
    assert [letter["entry"] for letter in await dead_letters(graph)] == [entry_id(deadly)]


async def test_two_workers_add_a_dead_letter_once(graph: Graph, another: Open, raw: Redis) -> None:
    """Both find at the same time that the event has had too many deliveries."""
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

    assert len(await dead_letters(graph)) == 1


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


async def failed_posts(graph: Graph, raw: Redis, author: int, *texts: str) -> list[int]:
    """Append posts that become dead letters, and return their numbers. Later, they can be projected."""
    await raw.set(keys.posts(author), "not a sorted set")
    numbers = await append(graph, *(PostPublished(author, text) for text in texts))
    await graph.worker(SOON).drain()
    await raw.delete(keys.posts(author))
    return numbers


async def test_a_dead_letter_is_projected_again(graph: Graph, raw: Redis) -> None:
    """The event is projected once the cause is removed, and stays a dead letter until then."""
    [alice] = await people(graph, "alice")
    first, second = await failed_posts(graph, raw, alice, "1", "2")
    await raw.set(keys.posts(alice), "not a sorted set")
    [(letter, problem)] = [each async for each in graph.redelivery().retry([entry_id(first)])]
    assert (letter.entry, "WRONGTYPE" in problem) == (entry_id(first), True)
    assert len(await dead_letters(graph)) == 2
    await raw.delete(keys.posts(alice))

    outcomes = [each async for each in graph.redelivery().retry(None)]

    assert [(each.entry, problem) for each, problem in outcomes] == [(entry_id(first), ""), (entry_id(second), "")]
    assert await home(graph, alice) == [second, first]
    assert await dead_letters(graph) == []


async def test_an_old_dead_letter_is_not_projected_again(another: Open, raw: Redis) -> None:
    """Otherwise a second deletion of an archived post, whose tombstones are gone, would be counted again."""
    graph = await another(tombstones_live=timedelta(0), hot_posts=1, hot_slack=1, hot_newest=1)
    [alice] = await people(graph, "alice")
    first, second, *_ = await posts(graph, alice, *"12345678")
    await graph.worker().drain()
    await archive_log(graph)
    await graph.posts.delete(alice, first)
    number = await graph.log.last() + 1
    words = ("kind", "PostDeleted", "actor", str(alice), "subject", str(first), "body", "{}")
    await graph.store.run("XADD", keys.DEAD, "*", "entry", entry_id(number), "reason", "odd", *words)
    await posts(graph, alice, "later")
    await graph.worker().drain()
    await archive_log(graph)
    await graph.scan.run_pass()
    await graph.posts.delete(alice, second)
    await graph.worker().drain()
    await archive_log(graph)
    assert await graph.users.posts_counts([alice]) == [7]

    [(_, problem)] = [each async for each in graph.redelivery().retry(None)]

    assert "fanline repair" in problem
    assert await graph.users.posts_counts([alice]) == [7]
    assert len(await dead_letters(graph)) == 1


async def test_a_dead_task_is_run_again(another: Open, raw: Redis) -> None:
    graph = await another(fan_out_task=4, sync_followers=0)
    star, fans = await star_with_fans(graph, raw, 9)
    await raw.delete(keys.home(fans[0]))
    await raw.set(keys.home(fans[0]), "not a sorted set")
    [post] = await append(graph, PostPublished(star, "hi"))
    await graph.worker(timedelta(0)).drain()
    await raw.delete(keys.home(fans[0]))
    await raw.zadd(keys.home(fans[0]), {"f": 0})

    [(letter, problem)] = [each async for each in graph.redelivery().retry(None)]

    assert (letter.is_task, problem) == (True, "")
    assert await served(raw, fans, post) == fans


async def test_a_dead_letter_whose_content_the_archive_refused_stays(graph: Graph) -> None:
    """The event is projected; it is the database that must be corrected."""
    await graph.dead_letters.keep("1-1", ["kind", "Followed", "actor", "1", "body", "{}"], "refused")

    [(_, problem)] = [each async for each in graph.redelivery().retry(None)]

    assert "its content is not in the archive" in problem
    assert len(await dead_letters(graph)) == 1


async def test_the_oldest_dead_letters_are_dropped_and_counted(
    graph: Graph, raw: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph.log.dead_letters.MAX_DEAD_LETTERS", 3)
    for number in range(5):
        await raw.xadd(keys.DEAD, {"entry": f"{number}-0", "reason": "odd"})

    async with background(graph.worker(SOON).run()):
        await reached(dropped_of(graph), 2)

    assert [letter["entry"] for letter in await dead_letters(graph)] == ["2-0", "3-0", "4-0"]


def dropped_of(graph: Graph) -> Callable[[], Awaitable[int]]:
    async def read() -> int:
        return (await graph.backlog()).dropped

    return read
