"""A failover that loses the log's tail: numbers do not repeat, and who was told of what is undone hears of a Gap."""

import asyncio
from datetime import UTC, datetime, timedelta

from redis.asyncio import Redis

from graph import Graph
from graph.feed.feed import Feed
from graph.feed.updates import Gap, GapReason
from graph.log.events import PostPublished
from tests.graph.feed.watching import numbers, watching
from tests.support.graph_worlds import PATIENCE, Open, befriend, people, posts


async def test_a_process_never_appends_below_what_its_reader_has_told(
    graph: Graph, another: Open, raw: Redis, feed: Feed
) -> None:
    """Though the event came from another process, on a machine whose clock was ahead."""
    other = await another()
    [alice] = await people(graph, "alice")
    before = await raw.dump("{log}")
    async with watching(feed, alice) as watcher:
        ahead = datetime.now(UTC) + timedelta(seconds=30)
        [lost] = await other.log.append([PostPublished(alice, "lost")], times=[ahead])
        assert numbers(await watcher.take(1)) == [lost.number]
        await raw.restore("{log}", 0, before, replace=True)

        [kept] = await posts(graph, alice, "kept")

        assert kept > lost.number
        assert numbers(await watcher.take(1)) == [kept]


async def test_streams_that_were_told_of_lost_events_get_a_gap(graph: Graph, raw: Redis, feed: Feed) -> None:
    """Those that live through it, and those that resume with a cursor from the lost tail; then both go on."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    end = await graph.worker().drain()
    before = await raw.dump("{log}")
    async with watching(feed, alice) as watcher:
        [lost] = await posts(graph, bob, "lost")
        assert numbers(await watcher.take(1)) == [lost]
        await raw.restore("{log}", 0, before, replace=True)

        [gap] = await watcher.take(1)

        assert isinstance(gap, Gap)
        assert (gap.number, gap.reason) == (end, GapReason.RETENTION)
        async with watching(feed, alice, lost) as resumed, asyncio.timeout(PATIENCE):
            [gap] = await resumed.take(1)
            assert isinstance(gap, Gap)
            [kept] = await posts(graph, bob, "kept")
            assert numbers(await resumed.take(1)) == numbers(await watcher.take(1)) == [kept]
