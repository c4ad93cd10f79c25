"""Tests of the live feed after a failover that lost the newest entries of the log."""

import asyncio
from datetime import UTC, datetime, timedelta

from redis.asyncio import Redis

from graph import Graph
from graph.feed.feed import Feed
from graph.feed.updates import Gap, GapReason
from graph.log.events import PostPublished
from graph.model import number_at
from tests.graph.feed.watching import numbers, watching
from tests.support.graph_worlds import PATIENCE, Open, append_events, befriend, people, posts


async def test_new_numbers_are_above_those_that_were_streamed_before_a_failover(
    graph: Graph, another: Open, raw: Redis, feed: Feed
) -> None:
    """Also if the lost event came from another process whose clock was ahead."""
    other = await another()
    [alice] = await people(graph, "alice")
    before = await raw.dump("{log}")
    assert before is not None
    async with watching(feed, alice) as watcher:
        other.log.seen = number_at(datetime.now(UTC) + timedelta(seconds=30))
        [lost] = await append_events(other, [PostPublished(alice, "lost")])
        assert numbers(await watcher.take(1)) == [lost.number]
        await raw.restore("{log}", 0, before, replace=True)

        [kept] = await posts(graph, alice, "kept")

        assert kept > lost.number
        assert numbers(await watcher.take(1)) == [kept]


async def test_streams_that_contained_lost_events_get_a_gap(graph: Graph, raw: Redis, feed: Feed) -> None:
    """Both live streams and those that resume from a lost number."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    end = await graph.worker().drain()
    before = await raw.dump("{log}")
    assert before is not None
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
