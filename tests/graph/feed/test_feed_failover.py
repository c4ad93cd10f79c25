"""Tests of the live feed after a failover that lost the newest entries of the log."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.feed.feed import Feed
from graph.feed.filters import EventFilter
from graph.feed.updates import Gap, GapReason, PostRemoved
from graph.feed.updates import PostRemoved as Deleted
from graph.log.events import EventBody, Followed, PostDeleted, PostPublished
from graph.model import number_at
from tests.graph.feed.watching import feed_of, following, numbers, watching
from tests.support.graph_worlds import PATIENCE, Open, append_events, archive_log, befriend, people, posts, reached
from tests.support.stores import Fault, Stop, sends

pytestmark = pytest.mark.usefixtures("short_reads")


async def test_new_numbers_are_above_those_that_were_streamed_before_a_failover(
    graph: Graph, another: Open, raw: Redis, feed: Feed
) -> None:
    """New numbers are higher even if the lost event came from another process whose clock was ahead."""
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
        assert (await watcher.until(kept))[-1].number == kept


@pytest.mark.parametrize("busy", [False, True])
async def test_streams_that_contained_lost_events_get_a_gap(graph: Graph, raw: Redis, feed: Feed, busy: bool) -> None:
    """This holds for live streams and for those that resume from a lost number, even if newer events follow at once."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    end = await graph.worker().drain()
    before = await raw.dump("{log}")
    assert before is not None
    async with watching(feed, alice) as watcher, watching(feed, bob) as other:
        [lost] = await posts(graph, bob, "lost")
        assert numbers(await watcher.take(1)) == numbers(await other.take(1)) == [lost]
        await raw.restore("{log}", 0, before, replace=True)
        expected = await posts(graph, bob, "kept") if busy else []

        await reached(graph.losses.highest, lost)
        for each in (watcher, other):
            gap, *newer = await each.take(1 + len(expected))

            assert isinstance(gap, Gap)
            assert (gap.number, gap.reason) == (end, GapReason.RETENTION)
            assert numbers(newer) == expected
        async with watching(feed, alice, lost) as resumed, asyncio.timeout(PATIENCE):
            gap, *newer = await resumed.take(1 + len(expected))
            assert isinstance(gap, Gap)
            assert numbers(newer) == expected
            [last] = await posts(graph, bob, "last")
            assert numbers(await resumed.take(1)) == numbers(await watcher.take(1)) == [last]


async def test_a_stream_that_resumes_after_several_failovers_gets_a_gap(graph: Graph, raw: Redis, feed: Feed) -> None:
    """The stream resumes from a number that one of the failovers has lost."""
    [alice] = await people(graph, "alice")
    lost, kept = [], []
    async with watching(feed, alice) as live:
        for _ in range(2):
            before = await raw.dump("{log}")
            assert before is not None
            lost += await posts(graph, alice, "lost")
            assert numbers(await live.take(1)) == lost[-1:]
            await raw.restore("{log}", 0, before, replace=True)
            kept += await posts(graph, alice, "kept")
            assert numbers(await live.until(kept[-1]))[-1] == kept[-1]

        for number in lost:
            async with watching(feed, alice, number) as resumed:
                gap, *newer = await resumed.take(3)
                assert isinstance(gap, Gap)
                assert numbers(newer) == kept


async def test_a_reader_that_is_cut_off_during_a_failover_reports_a_gap(
    graph: Graph, another: Open, raw: Redis
) -> None:
    """By the time it reads again, the log holds newer events."""
    reading = await another()
    [alice] = await people(graph, "alice")
    before = await raw.dump("{log}")
    assert before is not None
    async with feed_of(reading) as feed, watching(feed, alice) as watcher:
        fault = Fault(reading.store, sends("XREAD"), times=1)
        [lost] = await posts(graph, alice, "lost")
        assert numbers(await watcher.take(1)) == [lost]
        await fault.done.wait()
        await raw.restore("{log}", 0, before, replace=True)
        [kept] = await posts(graph, alice, "kept")

        gap, newer = await watcher.take(2)

    assert isinstance(gap, Gap)
    assert newer.number == kept


async def test_a_stream_that_replays_during_a_failover_gets_a_gap(graph: Graph, raw: Redis, feed: Feed) -> None:
    [alice] = await people(graph, "alice")
    before = await raw.dump("{log}")
    assert before is not None
    lost = await posts(graph, alice, "lost", "lost too")
    async with watching(feed, alice, alice) as replaying, watching(feed, alice) as live:
        assert numbers(await replaying.take(2)) == lost
        await raw.restore("{log}", 0, before, replace=True)
        [kept] = await posts(graph, alice, "kept")
        assert (await live.until(kept))[-1].number == kept

        gap, newer = await replaying.take(2)

    assert isinstance(gap, Gap)
    assert newer.number == kept


async def test_a_head_whose_deletion_was_scrubbed_is_not_lost(graph: Graph, another: Open) -> None:
    """The deletion was archived and scrubbed before the slow reader read it."""
    reading = await another()
    [alice] = await people(graph, "alice")
    async with feed_of(reading) as feed, watching(feed, alice) as watcher:
        stop = Stop(reading.store, sends("XREAD"))
        await watcher.until((await posts(graph, alice, "wakes the reader"))[0])
        await stop.reached.wait()
        head = await graph.log.last()
        await graph.posts.delete(alice, head)
        deletion = await graph.log.last()
        await graph.worker().drain()
        await archive_log(graph)
        await graph.housekeeping.tidy()
        assert await graph.log.get(head) is None
        [last] = await posts(graph, alice, "last")
        stop.resume()

        assert numbers(await watcher.until(last)) == [deletion, last]


@pytest.mark.parametrize("replayed", [False, True])
async def test_a_deletion_that_is_appended_again_is_sent_once(graph: Graph, feed: Feed, replayed: bool) -> None:
    """The scan appends the deletion again if a failover has lost the first event."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    start = await graph.log.last()
    gone, other = await posts(graph, bob, "gone", "other")
    home = watching(feed, alice, start if replayed else None)
    events = following(feed, EventFilter.of(users=[bob]), start if replayed else None)
    repeated: list[EventBody] = [PostDeleted(bob, gone), PostDeleted(bob, other), PostDeleted(bob, gone)]
    if replayed:
        await append_events(graph, repeated)
    async with home as in_home, events as in_events:
        if not replayed:
            await append_events(graph, repeated)
        [last] = await posts(graph, bob, "last")

        for watcher in (in_home, in_events):
            updates = await watcher.until(last)
            assert [update.post for update in updates if isinstance(update, PostRemoved | Deleted)] == [gone, other]


async def test_a_stream_that_waits_for_events_that_are_lost_goes_live(
    graph: Graph, another: Open, raw: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream goes live even if nothing else happens. At its start, the reader was behind the lost events."""
    monkeypatch.setattr("graph.feed.subscription.PROGRESS_SECONDS", 0.05)
    reading = await another()
    [alice] = await people(graph, "alice")
    async with feed_of(reading) as feed, watching(feed, alice) as watcher:
        stop = Stop(reading.store, sends("XREAD"))
        await watcher.until((await posts(graph, alice, "wakes the reader"))[0])
        await stop.reached.wait()
        before = await raw.dump("{log}")
        assert before is not None
        await posts(graph, alice, "lost")

        async def go_live() -> None:
            async with following(feed, EventFilter.of(keywords=["word"])):
                pass

        async with asyncio.TaskGroup() as group:
            live = group.create_task(go_live())
            await asyncio.sleep(0.1)
            assert not live.done()
            await raw.restore("{log}", 0, before, replace=True)
        stop.resume()


async def test_what_a_failover_makes_unprojected_is_known_again(
    graph: Graph, raw: Redis, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failover may lose projections and the watermark without losing events."""
    monkeypatch.setattr("graph.feed.unprojected.KEEP_SECONDS", 0.0)
    alice, bob = await people(graph, "alice", "bob")
    before = await graph.worker().drain()
    reader = feed._reader
    async with watching(feed, alice) as watcher:
        [followed] = await append_events(graph, [Followed(alice, bob)])
        await watcher.take(1)
        while reader.unprojected.of(alice):
            await graph.worker().drain()
            await watcher.until((await posts(graph, alice, "moves the watermark"))[0])
        await raw.set(keys.WATERMARK, before)

        await reached(lambda: asyncio.sleep(0, len(reader.unprojected.of(alice))), 1)
        assert reader.unprojected.of(alice) == [followed]
