"""Tests of live home timelines."""

import asyncio
from collections.abc import Sequence

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.errors import SessionOver
from graph.feed.feed import Feed
from graph.feed.filters import EventFilter
from graph.feed.updates import AuthorAdded, AuthorRemoved, Checkpoint, PostAdded, PostRemoved
from graph.log.events import Followed, PostPublished, ProfileChanged, SessionsEnded
from graph.model import Post
from graph.store.commands import Command
from tests.graph.feed.watching import CHECKPOINT_SECONDS, blocked, feed_of, following, numbers, watching
from tests.support.graph_worlds import PATIENCE, Open, append_events, background, befriend, people, posts, reached
from tests.support.stores import HookedStore, Stop, sends


async def test_a_stream_begins_with_a_checkpoint(graph: Graph, feed: Feed) -> None:
    """The checkpoint's number is the end of the log, or the cursor that the stream resumes from."""
    alice, bob = await people(graph, "alice", "bob")
    for after in (None, alice):
        stream = feed.home(alice, after)
        first = await anext(stream)
        assert isinstance(first, Checkpoint)
        assert first.number == (after or bob)
        await stream.aclose()


async def test_posts_of_the_viewer_and_of_followed_users_arrive_in_log_order(graph: Graph, feed: Feed) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob)
    async with watching(feed, alice) as watcher:
        await posts(graph, carol, "not for alice")
        written = [await graph.posts.publish(author, "hi", platform="web") for author in (bob, alice, bob)]

        updates = await watcher.take(3)

        assert updates == [PostAdded(post.id, post) for post in written]
        assert await watcher.silent()


async def test_deletions_in_the_timeline_are_streamed(graph: Graph, feed: Feed) -> None:
    """Deletions of posts by users whom the viewer does not follow are left out."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob)
    [post], [other] = await posts(graph, bob, "hi"), await posts(graph, carol, "hi")
    async with watching(feed, alice) as watcher:
        await graph.posts.delete(carol, other)
        await graph.posts.delete(bob, post)

        [update] = await watcher.take(1)

        assert update == PostRemoved(await graph.log.last(), post, bob)
        assert await watcher.silent()


async def test_a_live_stream_applies_follows_and_unfollows(graph: Graph, feed: Feed) -> None:
    """The stream contains AuthorAdded, the posts of the author, AuthorRemoved, then no more posts of the author."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    async with watching(feed, alice) as watcher:
        await posts(graph, bob, "before")
        await befriend(graph, carol, alice)
        await befriend(graph, alice, bob)
        followed = await graph.log.last()
        [shown] = await posts(graph, bob, "shown")
        await graph.follows.unfollow(alice, [bob])
        unfollowed = await graph.log.last()
        await posts(graph, bob, "after")
        [own] = await posts(graph, alice, "own")

        updates = await watcher.until(own)

    assert updates[0] == AuthorAdded(followed, bob)
    assert [update for update in updates[1:] if isinstance(update, AuthorRemoved)] == [AuthorRemoved(unfollowed, bob)]
    assert numbers(updates) == [followed, shown, unfollowed, own]


async def test_a_stream_without_updates_gets_checkpoints(graph: Graph, feed: Feed) -> None:
    """Their numbers advance with events that do not concern the viewer."""
    alice, bob = await people(graph, "alice", "bob")
    async with watching(feed, alice) as watcher:
        assert (await watcher.next()).number == bob
        [post] = await posts(graph, bob, "not for alice")

        async with asyncio.timeout(PATIENCE):
            while (checkpoint := await watcher.next()).number < post:
                assert isinstance(checkpoint, Checkpoint)


async def test_a_stream_without_updates_gets_checkpoints_while_the_log_is_busy(graph: Graph, feed: Feed) -> None:
    alice, bob = await people(graph, "alice", "bob")

    async def chatter() -> None:
        while True:
            await append_events(graph, [ProfileChanged(bob, "b")])
            await asyncio.sleep(CHECKPOINT_SECONDS / 10)

    async with watching(feed, alice) as watcher, background(chatter()), asyncio.timeout(PATIENCE):
        assert isinstance(await watcher.next(), Checkpoint)


async def test_an_unprojected_post_is_streamed(graph: Graph, feed: Feed) -> None:
    """The post is streamed both live and in the replay."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    start = await graph.log.last()
    async with watching(feed, alice) as watcher:
        [event] = await append_events(graph, [PostPublished(bob, "hi", "web", 1.0, 2.0)])
        [live] = await watcher.take(1)
    async with watching(feed, alice, start) as watcher:
        [replayed] = await watcher.take(1)

    assert isinstance(live, PostAdded)
    assert (live.number, live.post.text, live.post.author) == (event.number, "hi", bob)
    assert isinstance(live.post, Post)
    assert replayed == live


async def test_an_unprojected_follow_is_applied(graph: Graph, feed: Feed) -> None:
    """A stream that joins between the commit of a follow and its projection contains the posts of the followed user."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, carol)
    await graph.worker().drain()
    await append_events(graph, [Followed(alice, bob)])
    await graph.follows.unfollow(alice, [carol])

    async with watching(feed, alice) as watcher:
        await posts(graph, carol, "left out")
        [post] = await posts(graph, bob, "hi")
        assert numbers(await watcher.take(1)) == [post]


async def test_a_stream_ends_with_its_session(graph: Graph, feed: Feed) -> None:
    """Streams of the user's other sessions continue."""
    [alice] = await people(graph, "alice")
    phone, laptop = await graph.sessions.start(alice), await graph.sessions.start(alice)
    async with (
        watching(feed, alice, session=phone.id) as on_phone,
        watching(feed, alice, session=laptop.id) as on_laptop,
    ):
        await graph.sessions.end(alice, phone.id)

        with pytest.raises(SessionOver):
            await on_phone.take(1)
        [post] = await posts(graph, alice, "still here")
        assert numbers(await on_laptop.take(1)) == [post]
        await graph.sessions.end(alice)
        with pytest.raises(SessionOver):
            await on_laptop.take(1)


async def test_a_session_that_has_ended_gets_no_stream(graph: Graph, feed: Feed) -> None:
    [alice] = await people(graph, "alice")
    session = await graph.sessions.start(alice)
    await graph.sessions.end(alice, session.id)
    await graph.worker().drain()

    with pytest.raises(SessionOver):
        async with watching(feed, alice, session=session.id) as watcher:
            await watcher.silent()


async def test_a_session_that_was_replaced_by_newer_ones_ends_its_stream(graph: Graph, feed: Feed, raw: Redis) -> None:
    """The log has no event for a replacement or an expiry. The session watch finds both when it sweeps."""
    [alice] = await people(graph, "alice")
    session = await graph.sessions.start(alice)
    async with watching(feed, alice, session=session.id) as watcher:
        assert isinstance(await watcher.next(), Checkpoint)
        await raw.hdel(f"session:{{{alice}}}", session.id)

        with pytest.raises(SessionOver):
            await watcher.take(1)


@pytest.mark.single_server("looks into the server's list of clients")
async def test_the_streams_of_a_process_share_one_reader(graph: Graph, feed: Feed, raw: Redis) -> None:
    """Fifty subscribers need one blocked connection."""
    alice, *_ = await people(graph, "alice")
    streams = [feed.home(alice) for _ in range(50)]
    await asyncio.gather(*(anext(stream) for stream in streams))
    [post] = await posts(graph, alice, "hi")

    updates = await asyncio.gather(*(anext(stream) for stream in streams))
    await reached(lambda: blocked(raw), 1)
    readers = await blocked(raw)
    await asyncio.gather(*(stream.aclose() for stream in streams))

    assert numbers(list(updates)) == 50 * [post]
    assert readers == 1


@pytest.mark.single_server("looks into the server's list of clients")
async def test_the_reader_continues_after_an_error_reply(graph: Graph, feed: Feed, raw: Redis) -> None:
    """A failover unblocks blocked clients with an error."""
    alice, *_ = await people(graph, "alice")
    async with watching(feed, alice) as watcher:
        await reached(lambda: blocked(raw), 1)
        [reader] = [client for client in await raw.client_list() if client["cmd"] == "xread"]
        await raw.client_unblock(int(reader["id"]), error=True)
        await watcher.silent()
        [post] = await posts(graph, alice, "hi")

        async with asyncio.timeout(100 * CHECKPOINT_SECONDS):
            assert numbers(await watcher.take(1)) == [post]


async def test_a_session_with_an_unprojected_log_out_gets_no_stream(graph: Graph, feed: Feed) -> None:
    """The process that logged out died after its commit, before the stream began."""
    [alice] = await people(graph, "alice")
    session = await graph.sessions.start(alice)
    await graph.worker().drain()
    await append_events(graph, [SessionsEnded(alice, [session.id])])

    with pytest.raises(SessionOver):
        async with watching(feed, alice, session=session.id) as watcher:
            await watcher.silent()


async def test_an_unprojected_log_out_ends_a_live_stream(graph: Graph, feed: Feed) -> None:
    [alice] = await people(graph, "alice")
    session = await graph.sessions.start(alice)
    async with watching(feed, alice, session=session.id) as watcher:
        await append_events(graph, [SessionsEnded(alice, [session.id])])
        with pytest.raises(SessionOver):
            await watcher.take(1)


async def test_only_posts_that_concern_a_stream_are_looked_up(graph: Graph, another: Open) -> None:
    """Posts that concern no stream are not looked up."""
    reading = await another()
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob)
    looked_up: list[int] = []

    async def record(commands: Sequence[Command]) -> None:
        looked_up.extend(int(str(key)[6:-1]) for name, key, *_ in commands if name == "HEXISTS")

    assert isinstance(reading.store, HookedStore)
    reading.store.before.append(record)
    rain = EventFilter.of(keywords=["rain"])
    async with feed_of(reading) as feed, watching(feed, alice) as home, following(feed, rain) as events:
        by_bob, _, rainy = [*await posts(graph, bob, "b"), *await posts(graph, carol, "dry", "rain")]

        assert numbers(await home.take(1)) == [by_bob]
        assert numbers(await events.take(1)) == [rainy]
    assert sorted(looked_up) == [by_bob, rainy]


async def test_a_deleted_post_of_an_author_followed_in_the_same_batch_is_left_out(graph: Graph, another: Open) -> None:
    """The post concerns no stream when the batch is looked up."""
    reading = await another()
    alice, bob = await people(graph, "alice", "bob")
    async with feed_of(reading) as feed, watching(feed, alice) as watcher:
        stop = Stop(reading.store, sends("XREAD"))
        await watcher.until((await posts(graph, alice, "wakes the reader"))[0])
        await stop.reached.wait()
        await befriend(graph, alice, bob)
        gone, kept = await posts(graph, bob, "gone", "kept")
        await graph.posts.delete(bob, gone)
        stop.resume()

        updates = await watcher.take(3)

    assert [type(update) for update in updates] == [AuthorAdded, PostAdded, PostRemoved]
    assert updates[1].number == kept


async def test_a_deleted_post_is_left_out_of_a_stream_that_joins_after_the_look_up(graph: Graph, another: Open) -> None:
    """No other stream needed to know whether the post is deleted."""
    reading = await another()
    alice, bob = await people(graph, "alice", "bob")
    async with feed_of(reading) as feed, watching(feed, alice):
        stop = Stop(reading.store, sends("GET", keys.TRIMMED), after=True)
        gone, kept = [event.number for event in await graph.commit([PostPublished(bob, text) for text in "ab"])]
        await stop.reached.wait()
        async with following(feed, EventFilter.of(users=[bob])) as watcher:
            await graph.posts.delete(bob, gone)
            stop.resume()

            updates = await watcher.take(2)

    assert updates[0].number == kept
    assert updates[1].post == gone
