"""Joining a live stream while many events are not projected."""

import asyncio

import pytest

from graph import Graph, keys
from graph.errors import SessionOver
from graph.feed.feed import Feed
from graph.log.events import EventBody, Followed, ProfileChanged, SessionsEnded, Unfollowed
from graph.log.numbers import entry_id
from tests.graph.feed.watching import Watcher, feed_of, numbers, watching
from tests.support.graph_worlds import Open, append_events, befriend, counted, crowd, people, posts, reached
from tests.support.stores import Stop, sends


async def joining_cost(graph: Graph, feed: Feed, viewers: list[int]) -> list[int]:
    """Return the number of commands that each viewer's join takes."""
    costs = []
    for viewer in viewers:
        async with counted(graph) as cost:
            stream = feed.home(viewer)
            await anext(stream)
        costs.append(cost.commands)
        await stream.aclose()
    return costs


async def test_a_join_costs_the_same_however_far_the_workers_are_behind(graph: Graph, another: Open) -> None:
    reading = await another()
    viewers = await crowd(graph, 4)
    await graph.worker().drain()
    async with feed_of(reading, checkpoint_seconds=60) as feed:
        await joining_cost(reading, feed, viewers[:1])
        before = await joining_cost(reading, feed, viewers[1:])
        changes: list[EventBody] = [
            (Followed, Unfollowed)[n % 2](viewers[n % 4], viewers[(n + 1) % 4]) for n in range(1500)
        ]
        for start in range(0, len(changes), 500):
            await append_events(graph, changes[start : start + 500])
        await reached(lambda: asyncio.sleep(0, feed._reader.head), await graph.log.last())

        assert await joining_cost(reading, feed, viewers[1:]) == before == 3 * [4]


@pytest.mark.parametrize("known", ["when the reader starts", "while it reads", "beyond the events in memory"])
async def test_a_join_applies_the_viewers_unprojected_follows(
    graph: Graph, another: Open, known: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last event of each followee counts."""
    monkeypatch.setattr("graph.feed.reader.MAX_RECENT", 2 if known == "beyond the events in memory" else 1000)
    reading = await another()
    alice, bob, carol, dave = await people(graph, "alice", "bob", "carol", "dave")
    await befriend(graph, alice, bob)
    await graph.worker().drain()
    async with feed_of(reading) as feed:
        if known == "while it reads":
            async with watching(feed, dave):
                pass
        unprojected: list[EventBody] = [Followed(alice, carol), Unfollowed(alice, bob), Unfollowed(alice, carol)]
        unprojected += [Followed(alice, dave), Followed(alice, carol)]
        await append_events(graph, [*unprojected, *[ProfileChanged(dave, f"{n}") for n in range(5)]])
        if known == "while it reads":
            async with watching(feed, dave) as other:
                assert await other.silent()

        async with watching(feed, alice) as watcher:
            await posts(graph, bob, "left out")
            written = await posts(graph, dave, "d") + await posts(graph, carol, "c")
            assert numbers(await watcher.take(2)) == written


async def test_an_event_that_is_projected_and_forgotten_during_a_join_is_not_missed(
    graph: Graph, another: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The join read the follows before the event was projected, so it reads them again."""
    monkeypatch.setattr("graph.feed.unprojected.KEEP_SECONDS", 0)
    reading = await another()
    alice, bob = await people(graph, "alice", "bob")
    await graph.worker().drain()
    async with feed_of(reading) as feed, watching(feed, bob) as other:
        stop = Stop(reading.store, sends("ZRANGE", keys.following(alice)), after=True)
        stream = feed.home(alice)
        joining = asyncio.ensure_future(anext(stream))
        await stop.reached.wait()
        await befriend(graph, alice, bob)
        for n in range(3):
            [post] = await posts(graph, bob, f"{n}")
            await other.until(post)
            await graph.worker().drain()
        stop.resume()
        await joining

        watcher = Watcher(stream)
        assert await watcher.silent()
        live = await posts(graph, bob, "live")
        assert numbers(await watcher.take(1)) == live
        await stream.aclose()


async def test_events_that_retention_removes_while_the_reader_starts_are_not_applied(
    graph: Graph, another: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier event of the same follow would otherwise undo the projected one."""
    monkeypatch.setattr("graph.log.log.READ_CHUNK", 1)
    monkeypatch.setattr("graph.feed.reader.MAX_RECENT", 1)
    reading = await another()
    alice, bob = await people(graph, "alice", "bob")
    await graph.worker().drain()
    [_, unfollowed, _] = await append_events(
        graph, [Followed(alice, bob), Unfollowed(alice, bob), ProfileChanged(bob, "B")]
    )
    async with feed_of(reading) as feed:
        stop = Stop(reading.store, sends("XRANGE"), after=True)
        stream = feed.home(alice)
        joining = asyncio.ensure_future(anext(stream))
        await stop.reached.wait()
        await graph.worker().drain()
        trim = ("XTRIM", keys.LOG, "MINID", entry_id(unfollowed.number + 1))
        await graph.store.send([("SET", keys.TRIMMED, unfollowed.number), trim])
        stop.resume()
        await joining

        watcher = Watcher(stream)
        assert await watcher.silent()
        await posts(graph, bob, "left out")
        own = await posts(graph, alice, "own")
        assert numbers(await watcher.take(1)) == own
        await stream.aclose()


async def test_an_unprojected_log_out_ends_a_stream_that_joins(graph: Graph, another: Open) -> None:
    reading = await another()
    [alice] = await people(graph, "alice")
    session = await graph.sessions.start(alice)
    await graph.worker().drain()
    async with feed_of(reading) as feed:
        async with watching(feed, alice):
            pass
        await append_events(graph, [SessionsEnded(alice, [session.id])])
        async with watching(feed, alice) as watcher:
            assert await watcher.silent()
        with pytest.raises(SessionOver):
            await anext(feed.home(alice, None, session.id))
