"""The live feed: what happens to a home timeline, in log order, as it happens."""

import asyncio

import pytest
from redis.asyncio import Redis

from graph import Graph
from graph.errors import SessionOver
from graph.feed.feed import Feed
from graph.feed.updates import AuthorAdded, AuthorRemoved, Checkpoint, PostAdded, PostRemoved
from graph.log.events import Followed, PostPublished, ProfileChanged, SessionsEnded
from graph.model import Post
from tests.graph.feed.watching import QUIET, blocked, numbers, watching
from tests.support.graph_worlds import PATIENCE, background, befriend, people, posts, reached


async def test_a_stream_begins_with_a_checkpoint(graph: Graph, feed: Feed) -> None:
    """At the log's end, or at the cursor it resumes from."""
    alice, bob = await people(graph, "alice", "bob")
    for after in (None, alice):
        stream = feed.home(alice, after)
        first = await anext(stream)
        assert isinstance(first, Checkpoint)
        assert first.number == (after or bob)
        await stream.aclose()


async def test_posts_arrive_in_the_order_of_the_log(graph: Graph, feed: Feed) -> None:
    """One's own and those of everyone followed; nobody else's."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob)
    async with watching(feed, alice) as watcher:
        await posts(graph, carol, "not for alice")
        written = [await graph.posts.publish(author, "hi", platform="web") for author in (bob, alice, bob)]

        updates = await watcher.take(3)

        assert updates == [PostAdded(post.id, post) for post in written]
        assert await watcher.silent()


async def test_deletions_are_retracted(graph: Graph, feed: Feed) -> None:
    """The removal names the post and its author; those of strangers are not told."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob)
    [post], [other] = await posts(graph, bob, "hi"), await posts(graph, carol, "hi")
    async with watching(feed, alice) as watcher:
        await graph.posts.delete(carol, other)
        await graph.posts.delete(bob, post)

        [update] = await watcher.take(1)

        assert update == PostRemoved(await graph.log.last(), post, bob)
        assert await watcher.silent()


async def test_follows_change_what_is_shown_from_then_on(graph: Graph, feed: Feed) -> None:
    """AuthorAdded, then that author's posts; AuthorRemoved, then none; others' follows are not told."""
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


async def test_a_quiet_stream_gives_checkpoints(graph: Graph, feed: Feed) -> None:
    """They carry the place to resume from, which advances with events that are of no concern."""
    alice, bob = await people(graph, "alice", "bob")
    async with watching(feed, alice) as watcher:
        assert (await watcher.next()).number == bob
        [post] = await posts(graph, bob, "not for alice")

        async with asyncio.timeout(PATIENCE):
            while (checkpoint := await watcher.next()).number < post:
                assert isinstance(checkpoint, Checkpoint)


async def test_a_stream_is_quiet_even_if_the_log_is_not(graph: Graph, feed: Feed) -> None:
    """Who is told nothing gets checkpoints all the same while others are busy: the cursor must not grow old."""
    alice, bob = await people(graph, "alice", "bob")

    async def chatter() -> None:
        while True:
            await graph.log.append([ProfileChanged(bob, "b")])
            await asyncio.sleep(QUIET / 10)

    async with watching(feed, alice) as watcher, background(chatter()), asyncio.timeout(10 * QUIET):
        assert isinstance(await watcher.next(), Checkpoint)


async def test_a_post_that_nobody_projected_yet_is_streamed(graph: Graph, feed: Feed) -> None:
    """From its event: the feed does not wait for projections, live or in the replay."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    start = await graph.log.last()
    async with watching(feed, alice) as watcher:
        [event] = await graph.log.append([PostPublished(bob, "hi", "web", 1.0, 2.0)])
        [live] = await watcher.take(1)
    async with watching(feed, alice, start) as watcher:
        [replayed] = await watcher.take(1)

    assert isinstance(live, PostAdded)
    assert (live.number, live.post.text, live.post.author) == (event.number, "hi", bob)
    assert isinstance(live.post, Post)
    assert replayed == live


async def test_a_follow_that_nobody_projected_yet_counts(graph: Graph, feed: Feed) -> None:
    """A stream that joins between the commit of a follow and its projection shows the followee's posts."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, carol)
    await graph.worker().drain()
    await graph.log.append([Followed(alice, bob)])
    await graph.follows.unfollow(alice, [carol])

    async with watching(feed, alice) as watcher:
        await posts(graph, carol, "left out")
        [post] = await posts(graph, bob, "hi")
        assert numbers(await watcher.take(1)) == [post]


async def test_a_stream_ends_with_its_session(graph: Graph, feed: Feed) -> None:
    """Logging out ends the streams of that session and no others."""
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


async def test_a_session_that_ended_while_its_stream_began_ends_it(graph: Graph, feed: Feed) -> None:
    """Between the check of the token and the joining of the feed, no logging out is lost."""
    [alice] = await people(graph, "alice")
    session = await graph.sessions.start(alice)
    await graph.sessions.end(alice, session.id)
    await graph.worker().drain()

    with pytest.raises(SessionOver):
        async with watching(feed, alice, session=session.id) as watcher:
            await watcher.silent()


async def test_a_session_that_made_way_for_newer_ones_ends_its_stream(graph: Graph, feed: Feed, raw: Redis) -> None:
    """No event tells of it, nor of an expiry; so a stream looks its session up now and then, busy or quiet."""
    [alice] = await people(graph, "alice")
    session = await graph.sessions.start(alice)
    async with watching(feed, alice, session=session.id) as watcher:
        assert isinstance(await watcher.next(), Checkpoint)
        await raw.hdel(f"session:{{{alice}}}", session.id)

        with pytest.raises(SessionOver):
            await watcher.take(1)


async def test_the_streams_of_a_process_share_one_reader(graph: Graph, feed: Feed, raw: Redis) -> None:
    """Fifty subscribers, one blocked connection, and every one gets every post."""
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


async def test_an_error_reply_does_not_silence_the_streams(graph: Graph, feed: Feed, raw: Redis) -> None:
    """A failover unblocks blocked readers with an error; the feed reads on where it was."""
    alice, *_ = await people(graph, "alice")
    async with watching(feed, alice) as watcher:
        await reached(lambda: blocked(raw), 1)
        [reader] = [client for client in await raw.client_list() if client["cmd"] == "xread"]
        await raw.client_unblock(reader["id"], error=True)
        await watcher.silent()
        [post] = await posts(graph, alice, "hi")

        async with asyncio.timeout(20 * QUIET):
            assert numbers(await watcher.take(1)) == [post]


async def test_a_logging_out_that_nobody_projected_yet_ends_the_stream(graph: Graph, feed: Feed) -> None:
    """Its request died after the commit, before the stream began: no later event would end it."""
    [alice] = await people(graph, "alice")
    session = await graph.sessions.start(alice)
    await graph.worker().drain()
    await graph.log.append([SessionsEnded(alice, [session.id])])

    with pytest.raises(SessionOver):
        async with watching(feed, alice, session=session.id) as watcher:
            await watcher.silent()


async def test_a_live_stream_hears_of_a_logging_out_from_the_log(graph: Graph, feed: Feed) -> None:
    """Before anybody has projected it."""
    [alice] = await people(graph, "alice")
    session = await graph.sessions.start(alice)
    async with watching(feed, alice, session=session.id) as watcher:
        await graph.log.append([SessionsEnded(alice, [session.id])])
        with pytest.raises(SessionOver):
            await watcher.take(1)
