"""Tests of event streams."""

import asyncio
from functools import partial

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.errors import NotPermitted, SessionOver
from graph.feed.feed import Feed
from graph.feed.filters import Box, EventFilter, EventKind
from graph.feed.updates import (
    Checkpoint,
    Gap,
    GapReason,
    PostAdded,
    PostRemoved,
    UserFollowed,
    UserUnfollowed,
)
from graph.log.events import PermissionRevoked
from graph.log.numbers import entry_id
from graph.model import Permission
from tests.graph.feed.watching import Watcher, feed_of, following, numbers
from tests.support.graph_worlds import Open, append_events, archive_log, befriend, people, posts, reached
from tests.support.stores import Stop, sends


async def test_a_filter_by_user_matches_all_kinds_of_events(graph: Graph, feed: Feed) -> None:
    """The filter matches posts and deletions by the user, and follows on either side."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    async with following(feed, EventFilter.of(users=[bob])) as watcher:
        await posts(graph, alice, "not bob's")
        await befriend(graph, alice, carol)
        post = await graph.posts.publish(bob, "hi")
        updates = await watcher.take(1)
        await befriend(graph, alice, bob)
        await befriend(graph, bob, carol)
        await graph.follows.unfollow(alice, [bob])
        await graph.posts.delete(bob, post.id)

        updates += await watcher.take(4)

        assert await watcher.silent()
    at = numbers(updates)
    assert updates == [
        PostAdded(post.id, post),
        UserFollowed(at[1], alice, bob),
        UserFollowed(at[2], bob, carol),
        UserUnfollowed(at[3], alice, bob),
        PostRemoved(at[4], post.id, bob),
    ]
    assert at == sorted(at)


async def test_a_live_deletion_reaches_the_filters_that_matched_the_post(graph: Graph, another: Open) -> None:
    """Keywords match by the digest in the event, and every box matches."""
    elsewhere = await another()
    [alice] = await people(graph, "alice")
    rain, sun = await posts(graph, alice, "rain in Berlin", "sun in Rome")
    async with (
        feed_of(elsewhere) as feed,
        following(feed, EventFilter.of(keywords=["Rain berlin"])) as words,
        following(feed, EventFilter.of(within=Box(0, 0, 1, 1))) as box,
    ):
        for post in (sun, rain):
            await graph.posts.delete(alice, post)
        [update] = await words.take(1)
        assert isinstance(update, PostRemoved)
        assert (update.post, update.author) == (rain, alice)
        assert await words.silent()
        assert [update.post for update in await box.take(2)] == [sun, rain]


async def test_a_replayed_deletion_matches_every_keyword_and_box(graph: Graph, another: Open) -> None:
    """The filter may be a guess at the content of the deleted post. Users and samples still restrict deletions."""
    elsewhere = await another()
    [alice] = await people(graph, "alice")
    start = await graph.log.last()
    rain, sun = await posts(graph, alice, "rain in Berlin", "sun in Rome")
    for post in (rain, sun):
        await graph.posts.delete(alice, post)
    await graph.worker().drain()
    await archive_log(graph)
    await graph.housekeeping.tidy()
    for filter_ in (EventFilter.of(keywords=["Rain berlin"]), EventFilter.of(within=Box(0, 0, 1, 1))):
        async with feed_of(elsewhere) as feed, following(feed, filter_, start) as watcher:
            assert [update.post for update in await watcher.take(2)] == [rain, sun]
            assert await watcher.silent()
    nobodys = EventFilter.of(keywords=["rain"], users=[alice + 1])
    async with feed_of(elsewhere) as feed, following(feed, nobodys, start) as watcher:
        assert await watcher.silent()


async def test_a_stream_does_not_wait_for_lost_entries(
    graph: Graph, another: Open, raw: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream waits for a reader that is behind the newest entry, until a failover has removed that entry."""
    monkeypatch.setattr("graph.feed.subscription.PROGRESS_SECONDS", 0.05)
    process = await another()
    [alice] = await people(graph, "alice")
    async with feed_of(process) as feed:
        await feed._reader.ready()
        stop = Stop(process.store, sends("XREAD"))
        feed._reader.start()
        await stop.reached.wait()
        [lost] = await posts(graph, alice, "rain")
        stream = feed.events(None, EventFilter.of(keywords=["rain"]))
        watcher = Watcher(stream)
        assert isinstance(await watcher.next(), Checkpoint)
        step = asyncio.ensure_future(watcher.next())
        await asyncio.sleep(0.2)
        assert len(feed) == 0
        await raw.xdel(keys.LOG, entry_id(lost))
        stop.resume()
        assert isinstance(await step, Checkpoint)
        assert len(feed) == 1
        live = await posts(graph, alice, "more rain")
        assert numbers(await watcher.take(1)) == live
        await stream.aclose()


async def test_resuming_replays_missed_events_once(graph: Graph, feed: Feed) -> None:
    """Deleted posts are left out."""
    [alice] = await people(graph, "alice")
    chosen = EventFilter.of(keywords=["rain"])
    start = await graph.log.last()
    first, gone, _, last = await posts(graph, alice, "rain", "rain again", "sun", "more rain")
    await graph.posts.delete(alice, gone)
    deleted = await graph.log.last()
    async with following(feed, chosen, start) as watcher:
        assert numbers(await watcher.take(3)) == [first, last, deleted]
        live = await posts(graph, alice, "rain now")
        assert numbers(await watcher.take(1)) == live
    async with following(feed, chosen, last) as watcher:
        assert numbers(await watcher.take(2)) == [deleted, *live]


async def test_a_slow_stream_gets_a_gap_to_resume_from(
    graph: Graph, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new subscription from the number of the gap gets all events."""
    monkeypatch.setattr("graph.feed.buffer.MAX_BYTES", 1000)
    monkeypatch.setattr("graph.feed.feed.THROTTLE_SECONDS", 0)
    [alice] = await people(graph, "alice")
    chosen = EventFilter.of(users=[alice])
    async with following(feed, chosen) as slow:
        assert await slow.silent()
        written = [post for n in range(8) for post in await posts(graph, alice, f"{n}")]
        async with following(feed, chosen, written[0]) as beside:
            assert numbers(await beside.until(written[-1])) == written[1:]
        await graph.worker().drain()
        gap = await slow.next()
        assert isinstance(gap, Gap)
        assert gap.reason is GapReason.SLOW_CONSUMER
        assert await slow.silent()
        after = await posts(graph, alice, "after")
        assert numbers(await slow.take(1)) == after
        async with following(feed, chosen, gap.number) as resumed:
            assert numbers(await resumed.until(after[-1])) == [*written, *after]
    assert feed.cut_off == 1


async def test_a_firehose_requires_the_permission_of_a_viewer(graph: Graph, feed: Feed) -> None:
    [alice] = await people(graph, "alice")
    everything = EventFilter.of(firehose=True, kinds=[EventKind.POST_ADDED])
    with pytest.raises(NotPermitted):
        feed.events(None, everything)
    with pytest.raises(NotPermitted):
        await anext(feed.events(alice, everything))
    await graph.users.grant(alice, Permission.FIREHOSE)
    async with following(feed, everything, viewer=alice) as watcher:
        written = await posts(graph, alice, "everything")
        assert numbers(await watcher.take(1)) == written


async def test_a_revoked_permission_ends_the_firehose(graph: Graph, feed: Feed) -> None:
    """The revocation ends the stream at once, even before it is projected."""
    alice, bob = await people(graph, "alice", "bob")
    everything = EventFilter.of(firehose=True)
    for person in (alice, bob):
        await graph.users.grant(person, Permission.FIREHOSE)
    async with (
        following(feed, everything, viewer=alice) as revoked,
        following(feed, everything, viewer=bob) as kept,
    ):
        await append_events(graph, [PermissionRevoked(alice, Permission.FIREHOSE)])
        with pytest.raises(NotPermitted):
            await revoked.take(1)
        written = await posts(graph, bob, "still here")
        assert numbers(await kept.take(1)) == written


async def test_a_permission_that_was_granted_again_is_valid(graph: Graph, feed: Feed) -> None:
    """Unprojected revocations do not matter."""
    [alice] = await people(graph, "alice")
    await graph.users.grant(alice, Permission.FIREHOSE)
    await graph.users.revoke(alice, Permission.FIREHOSE)
    await graph.users.grant(alice, Permission.FIREHOSE)
    async with following(feed, EventFilter.of(firehose=True), viewer=alice) as watcher:
        assert await watcher.silent()


async def test_an_event_stream_ends_with_its_session(graph: Graph, feed: Feed) -> None:
    """Anonymous streams continue."""
    [alice] = await people(graph, "alice")
    session = await graph.sessions.start(alice)
    chosen = EventFilter.of(users=[alice])
    async with following(feed, chosen, None, alice, session.id) as watcher, following(feed, chosen) as anonymous:
        await graph.sessions.end(alice, session.id)
        with pytest.raises(SessionOver):
            await watcher.take(1)
        written = await posts(graph, alice, "hi")
        assert numbers(await anonymous.take(1)) == written


async def test_ended_streams_are_removed_from_all_indexes(graph: Graph, feed: Feed) -> None:
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    session = await graph.sessions.start(alice)
    chosen = EventFilter.of(users=[bob], keywords=["rain"])
    async with (
        following(feed, chosen, None, alice, session.id) as filtered,
        following(feed, EventFilter.of(keywords=["rain"])) as other,
    ):
        home = feed.home(alice, None, session.id)
        await anext(home)
        await filtered.silent()
        await other.silent()
        await anext(home)
        assert len(feed) == 3
        await home.aclose()
    assert len(feed) == 0
    assert not feed._home_index._by_viewer
    assert not [*feed._home_index._by_author]
    assert len(feed._session_watch) == 0


async def test_a_session_watch_calls_back_once(graph: Graph, feed: Feed, raw: Redis) -> None:
    """The watch calls back on log-out, expiry and replacement by newer sessions, but not after it was stopped."""
    [alice] = await people(graph, "alice")
    ended: list[int] = []
    opened = [await graph.sessions.start(alice) for _ in range(4)]
    stops = [feed.watch(alice, session.id, partial(ended.append, n)) for n, session in enumerate(opened)]

    async def count() -> int:
        return len(ended)

    stops[3]()
    await graph.sessions.end(alice, opened[0].id)
    await reached(count, 1)
    await raw.hset(keys.sessions(alice), opened[1].id, 1)
    await raw.hdel(keys.sessions(alice), opened[3].id)
    await reached(count, 2)
    await graph.sessions.end(alice)
    await reached(count, 3)
    assert ended == [0, 1, 2]
    assert len(feed._session_watch) == 0
