"""Tests of the live feed when a repair corrects what pages show."""

from graph import Graph, keys
from graph.feed.feed import Feed
from graph.feed.filters import EventFilter
from graph.feed.subscription import REPLAY_BATCH
from graph.feed.updates import Gap, GapReason
from tests.graph.feed.watching import Watcher, feed_of, following, numbers, watching
from tests.support.graph_worlds import archive_log, befriend, many_posts, people, posts


async def repaired(graph: Graph, bob: int) -> None:
    """Hide the posts of a user in the store, as a failover can do, and repair the store."""
    await graph.worker().drain()
    await archive_log(graph)
    await graph.store.send([("DEL", keys.posts(bob))])
    report = await graph.repair().run(correct=True)
    assert report.found
    assert report.clean
    await graph.worker().drain()


async def gap_of(watcher: Watcher, number: int = 0) -> Gap:
    """Return the next update, a `Gap` that reports a repair of the store after a number."""
    [gap] = await watcher.take(1)
    assert isinstance(gap, Gap)
    assert gap.reason is GapReason.REPAIR
    assert gap.number > number
    return gap


async def test_all_streams_get_a_gap_when_the_store_was_repaired(graph: Graph, feed: Feed) -> None:
    """Afterwards, the streams continue."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    [first] = await posts(graph, bob, "first")
    async with watching(feed, alice) as home, following(feed, EventFilter(users=(bob,))) as events:
        await repaired(graph, bob)
        for watcher in (home, events):
            await gap_of(watcher, first)
        expected = await posts(graph, bob, "second")
        for watcher in (home, events):
            assert numbers(await watcher.take(1)) == expected


async def test_a_stream_that_resumes_after_a_repair_gets_what_it_missed_and_a_gap_in_between(
    graph: Graph, feed: Feed
) -> None:
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    [first, second] = await posts(graph, bob, "first", "second")
    await repaired(graph, bob)
    [third] = await posts(graph, bob, "third")
    async with watching(feed, alice, first) as watcher:
        before, gap, after = await watcher.take(3)
    assert isinstance(gap, Gap)
    assert [before.number, after.number] == [second, third]
    assert second < gap.number < third


async def test_a_page_that_is_fetched_because_of_a_repair_causes_no_other_gap(graph: Graph, feed: Feed) -> None:
    """Neither the gap's cursor nor that of the new page leads to the same gap again."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    await posts(graph, bob, "hello")
    async with watching(feed, alice) as watcher:
        await repaired(graph, bob)
        gap = await gap_of(watcher)
    await graph.worker().drain()
    for cursor in (gap.number, await graph.log.watermark()):
        assert cursor >= gap.number
        async with watching(feed, alice, cursor) as resumed:
            assert await resumed.silent()


async def test_streams_of_a_user_know_the_follows_that_were_repaired(graph: Graph) -> None:
    """Two streams of the user share what they know about follows."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    await graph.worker().drain()
    await archive_log(graph)
    await graph.store.send([("DEL", keys.following(alice))])
    async with feed_of(graph) as feed, watching(feed, alice) as one, watching(feed, alice) as other:
        assert (await graph.repair().run(correct=True)).found
        await graph.worker().drain()
        for watcher in (one, other):
            await gap_of(watcher)
        expected = await posts(graph, bob, "hello")
        for watcher in (one, other):
            assert numbers(await watcher.take(1)) == expected


async def test_a_stream_that_is_behind_at_a_repair_knows_the_follows_that_were_repaired(
    graph: Graph, feed: Feed
) -> None:
    """The stream joined before the repair, and replays the viewer's own posts during the repair."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    await many_posts(graph, alice, 2 * REPLAY_BATCH)
    await graph.worker().drain()
    await archive_log(graph)
    await graph.store.send([("DEL", keys.following(alice))])
    async with watching(feed, alice, alice) as watcher:
        await watcher.take(1)
        assert (await graph.repair().run(correct=True)).found
        [expected] = await posts(graph, bob, "hello")
        await graph.worker().drain()
        updates = await watcher.until(expected)
    assert [update.reason for update in updates if isinstance(update, Gap)] == [GapReason.REPAIR]
    assert updates[-1].number == expected


async def test_a_repair_that_corrects_nothing_interrupts_no_stream(graph: Graph, feed: Feed) -> None:
    [alice] = await people(graph, "alice")
    await graph.worker().drain()
    await archive_log(graph)
    async with watching(feed, alice) as watcher:
        assert not (await graph.repair().run(correct=True)).found
        [expected] = await posts(graph, alice, "next")
        assert numbers(await watcher.take(1)) == [expected]


async def test_a_repair_that_continues_another_one_sends_a_gap_although_it_finds_nothing(
    graph: Graph, feed: Feed
) -> None:
    [alice] = await people(graph, "alice")
    await graph.worker().drain()
    await archive_log(graph)
    async with watching(feed, alice) as watcher:
        assert not (await graph.repair().run(correct=True, announces=True)).found
        await graph.worker().drain()
        await gap_of(watcher)
