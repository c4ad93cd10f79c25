"""Tests of resumed live streams and of gaps."""

import asyncio
from datetime import timedelta

import pytest

from graph import Graph
from graph.feed.buffer import Buffer, CutOff, size_of
from graph.feed.feed import Feed
from graph.feed.updates import AuthorAdded, AuthorRemoved, Checkpoint, Gap, GapReason, PostAdded, PostRemoved
from graph.log.events import Followed, PostPublished, ProfileChanged
from graph.log.numbers import entry_id
from graph.model import MAX_NUMBER, Post
from tests.graph.feed.watching import CHECKPOINT_SECONDS, Watcher, feed_of, numbers, watching
from tests.support.graph_worlds import (
    PATIENCE,
    Open,
    append_events,
    archive_log,
    background,
    befriend,
    cached,
    home,
    many_posts,
    people,
    posts,
)
from tests.support.stores import Fault, Stop, sends


async def test_resuming_replays_missed_updates_and_goes_live(graph: Graph, feed: Feed) -> None:
    """From any cursor, updates come in log order, each one once."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    start = await graph.log.last()
    written = await posts(graph, bob, *"12345")

    for seam, after in enumerate([start, *written]):
        async with watching(feed, alice, after) as watcher:
            written += await posts(graph, bob, "live")
            assert numbers(await watcher.until(written[-1])) == written[seam:]


async def test_no_update_is_lost_or_repeated_between_replay_and_live(graph: Graph, another: Open) -> None:
    """While one author publishes without pause, streams that resume repeatedly get every post once."""
    writer = await another()
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    written = await posts(graph, bob, "first")

    async def publish() -> None:
        for n in range(150):
            written.extend(await posts(writer, bob, f"{n}"))

    async with feed_of(graph, checkpoint_seconds=5) as feed:
        seen = list(written)
        async with background(publish()) as publishing:
            while len(seen) < 151:
                async with watching(feed, alice, seen[-1]) as watcher:
                    seen += numbers(await watcher.take(min(6, 151 - len(seen))))
            await publishing

    assert seen == written


async def test_a_page_and_the_stream_from_its_live_cursor_contain_every_post(graph: Graph, feed: Feed) -> None:
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    first = await posts(graph, bob, "1", "2")
    await graph.worker().drain()
    between = await posts(graph, bob, "3")
    mark = await graph.log.watermark()
    page = await home(graph, alice)
    late = await posts(graph, bob, "4")

    async with watching(feed, alice, mark) as watcher:
        updates = await watcher.until(late[-1])

    assert sorted({*page, *numbers(updates)}) == first + between + late


async def test_the_replay_uses_the_current_follows(graph: Graph, feed: Feed) -> None:
    """Posts of users who were unfollowed later are left out. The follows and unfollows themselves are streamed."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob)
    start = await graph.log.last()
    await posts(graph, bob, "left out")
    [early] = await posts(graph, carol, "of somebody followed later")
    await graph.follows.unfollow(alice, [bob])
    await befriend(graph, alice, carol)
    [late] = await posts(graph, carol, "late")

    async with watching(feed, alice, start) as watcher:
        updates = await watcher.until(late)

    assert [type(update) for update in updates] == [PostAdded, AuthorRemoved, AuthorAdded, PostAdded]
    assert (updates[0].number, updates[-1].number) == (early, late)


async def test_the_replay_contains_deletions_but_no_deleted_posts(graph: Graph, feed: Feed) -> None:
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    start = await graph.log.last()
    gone, kept = await posts(graph, bob, "gone", "kept")
    await graph.posts.delete(bob, gone)
    deleted = await graph.log.last()

    async with watching(feed, alice, start) as watcher:
        assert numbers(await watcher.until(deleted)) == [kept, deleted]
    await graph.worker().drain()
    await archive_log(graph)
    await graph.housekeeping.tidy()
    async with watching(feed, alice, start) as watcher:
        assert numbers(await watcher.until(deleted)) == [kept, deleted]


async def test_a_cursor_ahead_of_the_reader_misses_no_follow(graph: Graph, another: Open) -> None:
    """An unprojected follow lies between the reader of this process and the cursor."""
    lagging = await another()
    alice, bob = await people(graph, "alice", "bob")
    async with feed_of(lagging) as feed, watching(feed, bob):
        stop = Stop(lagging.store, sends("XREAD"), after=True)
        await append_events(graph, [ProfileChanged(bob, "b")])
        await stop.reached.wait()
        [follow, _] = await append_events(graph, [Followed(alice, bob), ProfileChanged(bob, "B")])

        async with watching(feed, alice, await graph.log.last()) as watcher:
            stop.resume()
            [post] = await posts(graph, bob, "hi")

            assert follow.number < post
            async with asyncio.timeout(100 * CHECKPOINT_SECONDS):
                assert numbers(await watcher.take(1)) == [post]


async def test_a_cursor_older_than_the_retention_gets_a_gap(another: Open) -> None:
    graph = await another(log_retention=timedelta(0))
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    start = await graph.log.last()
    await posts(graph, bob, "lost")
    worker = graph.worker()
    end = await worker.drain()
    await archive_log(graph)
    await graph.housekeeping.tidy()

    async with feed_of(graph) as feed:
        async with watching(feed, alice, start) as watcher:
            [gap] = await watcher.take(1)
            assert isinstance(gap, Gap)
            assert (gap.number, gap.reason) == (end, GapReason.RETENTION)
            live = await posts(graph, bob, "live")
            assert numbers(await watcher.take(1)) == live
        async with watching(feed, alice, end) as watcher:
            assert numbers(await watcher.take(1)) == live


@pytest.mark.parametrize("ahead", [1, MAX_NUMBER])
async def test_a_cursor_beyond_the_log_gets_a_gap(graph: Graph, feed: Feed, ahead: int) -> None:
    """A failover may have lost the entries that the cursor refers to."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    await graph.worker().drain()
    end = await graph.log.last()

    async with watching(feed, alice, min(end + ahead, MAX_NUMBER)) as watcher:
        [gap] = await watcher.take(1)
        assert (gap.number, isinstance(gap, Gap)) == (end, True)
        [post] = await posts(graph, bob, "hi")
        assert numbers(await watcher.take(1)) == [post]


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep two events in memory, and read the log in batches of two."""
    monkeypatch.setattr("graph.feed.reader.MAX_RECENT", 2)
    monkeypatch.setattr("graph.feed.reader.READ_BATCH", 2)
    monkeypatch.setattr("graph.feed.subscription.REPLAY_BATCH", 2)


@pytest.mark.usefixtures("forgetful")
async def test_events_that_are_trimmed_during_the_replay_get_a_gap(graph: Graph, feed: Feed) -> None:
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    start = await graph.log.last()
    written = await many_posts(graph, bob, 9)
    stream = feed.home(alice, start)
    assert isinstance(await anext(stream), Checkpoint)
    assert (await anext(stream)).number == written[0]
    await graph.store.send([("SET", "{log}:trimmed", written[5]), ("XTRIM", "{log}", "MINID", entry_id(written[6]))])

    updates = [await anext(stream) for _ in range(5)]
    await stream.aclose()

    assert [update.number for update in updates] == [written[1], written[5], *written[6:]]
    assert isinstance(updates[1], Gap)
    assert updates[1].reason is GapReason.RETENTION


@pytest.mark.usefixtures("forgetful")
async def test_trimmed_events_that_are_in_memory_get_no_gap(graph: Graph, feed: Feed) -> None:
    [alice] = await people(graph, "alice")
    async with watching(feed, alice) as first:
        written = await many_posts(graph, alice, 3)
        await first.until(written[-1])
        await graph.store.send([("SET", "{log}:trimmed", written[2]), ("XTRIM", "{log}", "MAXLEN", 0)])
        async with watching(feed, alice, written[1]) as watcher:
            assert [update.number for update in await watcher.take(1)] == written[2:]


async def test_a_reader_overtaken_by_retention_gives_each_stream_one_gap(graph: Graph, another: Open) -> None:
    lagging = await another()
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    async with feed_of(lagging) as feed, watching(feed, alice) as first, watching(feed, alice) as second:
        seen = await posts(graph, bob, "seen")
        assert numbers(await first.take(1)) == numbers(await second.take(1)) == seen
        assert await first.silent()  # the reader waits for the next event
        fault = Fault(lagging.store, sends("XREAD"), times=10**6)
        await posts(graph, bob, "wakes the reader")
        await first.take(1)
        lost, left = await posts(graph, bob, "lost", "left")
        await graph.store.send([("SET", "{log}:trimmed", lost), ("XTRIM", "{log}", "MINID", entry_id(left))])
        fault.left = 0

        for watcher in (first, second):
            updates = await watcher.until(left)
            gaps = [update for update in updates if isinstance(update, Gap)]
            assert [(gap.number, gap.reason) for gap in gaps] == [(lost, GapReason.RETENTION)]
            assert updates[-1].number == left


async def fall_behind(graph: Graph, author: int, slow: Watcher, fast: Watcher) -> int:
    """Fill the buffer of one watcher beyond its limit, after it took one post. Return that post."""
    [first] = await posts(graph, author, "first")
    assert numbers(await slow.take(1)) == [first]
    assert await slow.silent()
    for n in range(8):
        [post] = await posts(graph, author, f"{n}")
        assert (await fast.until(post))[-1].number == post
    await graph.worker().drain()
    return first


async def test_a_slow_client_gets_a_gap_and_others_do_not(
    graph: Graph, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slow client resumes at the watermark."""
    monkeypatch.setattr("graph.feed.buffer.MAX_BYTES", 1500)
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    async with watching(feed, alice) as slow, watching(feed, alice) as fast:
        first = await fall_behind(graph, bob, slow, fast)
        gap = await slow.next()

        assert isinstance(gap, Gap)
        assert (gap.number, gap.reason) == (first, GapReason.SLOW_CONSUMER)
        assert isinstance(checkpoint := await slow.next(), Checkpoint)
        assert checkpoint.number == await graph.log.last()
        after = await posts(graph, bob, "after")
        assert numbers(await slow.take(1)) == numbers(await fast.take(1)) == after
        async with watching(feed, alice, gap.number) as resumed:
            assert len(await resumed.until(after[-1])) == 9


async def test_posts_that_are_published_while_a_client_refetches_after_a_gap_are_streamed(
    graph: Graph, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream resumes at the watermark that was read before the gap was sent."""
    monkeypatch.setattr("graph.feed.buffer.MAX_BYTES", 1500)
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    async with watching(feed, alice) as slow, watching(feed, alice) as fast:
        await fall_behind(graph, bob, slow, fast)
        assert isinstance(await slow.next(), Gap)
        held = await home(graph, alice)  # the client's new page

        meanwhile = await posts(graph, bob, "meanwhile")
        await graph.worker().drain()

        assert meanwhile[0] not in held
        assert numbers(await slow.take(1)) == meanwhile


async def test_a_post_that_is_deleted_before_its_turn_is_not_streamed(
    graph: Graph, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The post is left out of the replay and, if the client is slow, of the live stream."""
    monkeypatch.setattr("graph.feed.deletions.RECHECK_SECONDS", 0.01)
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    start = await graph.log.last()
    async with watching(feed, alice, start) as resumed, watching(feed, alice) as live:
        written = [event.number for event in await graph.commit([PostPublished(bob, text) for text in "abc"])]
        assert numbers(await resumed.take(1)) == numbers(await live.take(1)) == written[:1]
        await graph.posts.delete(bob, written[2])
        await asyncio.sleep(0.1)
        assert numbers(await resumed.take(1)) == numbers(await live.take(1)) == written[1:2]
        for watcher in (resumed, live):
            [update] = await watcher.take(1)
            assert isinstance(update, PostRemoved)


def test_only_a_buffer_that_is_taken_from_counts_as_congested() -> None:
    """A client that stopped reading, or was cut off, does not hold up the reader."""
    buffer: Buffer[PostAdded] = Buffer()
    update = PostAdded(1, Post(1, 2, "x" * 1000))
    for _ in range(150):
        buffer.add(update, size_of(update), 0.0)
    assert not buffer.is_congested(1000.0)
    buffer._taken_at = 999.0
    assert buffer.is_congested(1000.0)
    buffer.cut(CutOff.FULL)
    assert not buffer.is_congested(1000.0)


async def test_a_burst_cuts_off_no_active_client(graph: Graph, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader waits, and meanwhile the events stay in the log."""
    monkeypatch.setattr("graph.feed.buffer.MAX_BYTES", 8000)
    monkeypatch.setattr("graph.feed.reader.READ_BATCH", 10)
    monkeypatch.setattr("graph.feed.feed.THROTTLE_SECONDS", PATIENCE)
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    async with watching(feed, alice) as watcher:
        events = await append_events(graph, [PostPublished(bob, f"{n}") for n in range(300)])
        taken: list[PostAdded] = []
        while len(taken) < len(events):
            taken += await watcher.take(1)
            await asyncio.sleep(0.001)
        assert numbers(taken) == [event.number for event in events]
    assert feed.cut_off == 0


async def test_a_client_that_applies_every_update_holds_the_home_timeline(graph: Graph, another: Open) -> None:
    """Posts, deletions, follows and unfollows are committed by two processes."""
    other = await another()
    alice, *authors = await people(graph, "alice", "bob", "carol", "dave")
    await cached(graph, alice)
    written: dict[int, list[int]] = {author: [] for author in authors}
    held: dict[int, int] = {}

    async def act(author: int, instance: Graph) -> None:
        for step in range(30):
            change = (instance.follows.follow, instance.follows.unfollow)[step // 3 % 2]
            if step % 3 == 0:
                await change(alice, [author])
            written[author] += await posts(instance, author, "x")
            if step % 4 == 3:
                await instance.posts.delete(author, written[author].pop(0))

    async with feed_of(graph) as feed, watching(feed, alice) as watcher:
        async with background(
            asyncio.gather(*(act(a, i) for a, i in zip(authors, (graph, other, graph), strict=True)))
        ) as acting:
            await acting
        [last] = await posts(graph, alice, "the end")
        while last not in held:
            match (await watcher.take(1))[0]:
                case PostAdded(_, post):
                    held[post.id] = post.author
                case PostRemoved(_, post_id):
                    held.pop(post_id, None)
                case AuthorAdded(_, user):
                    page = await home(graph, alice)
                    held.update({p: user for p in page if p in written[user]})
                case AuthorRemoved(_, user):
                    held = {post_id: author for post_id, author in held.items() if author != user}

    assert sorted(held, reverse=True) == await home(graph, alice)
