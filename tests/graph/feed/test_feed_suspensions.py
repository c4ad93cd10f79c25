"""Suspensions in live streams: posts of the user are left out; clients learn which to drop and which to refetch."""

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.errors import SessionOver
from graph.feed.feed import Feed
from graph.feed.filters import EventFilter
from graph.feed.updates import AuthorAdded, AuthorHidden, Gap, PostAdded, PostRemoved
from graph.log.events import PostPublished
from graph.log.moderation_events import UserSuspended, UserUnsuspended
from tests.graph.erasure.erasing import delete, erase, settle
from tests.graph.feed.watching import feed_of, following, watching
from tests.support.graph_worlds import Open, append_events, befriend, home, people, posts, reached

pytestmark = pytest.mark.usefixtures("short_reads")


async def test_home_streams_tell_of_suspensions(graph: Graph, feed: Feed) -> None:
    """Viewers who do not follow the user get the update too: they may have reposts of the user's posts."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob)
    async with watching(feed, alice) as follower, watching(feed, carol) as other:
        await graph.moderation.suspend(bob)
        await graph.moderation.unsuspend(bob)

        for watcher in (follower, other):
            updates = await watcher.take(2)
            assert [type(update) for update in updates] == [AuthorHidden, AuthorAdded]
            assert [update.user for update in updates] == [bob, bob]


async def test_streams_leave_out_what_suspended_users_wrote(graph: Graph, feed: Feed, another: Open) -> None:
    """Replays leave them out too, for viewers and anonymous clients, and in a process without earlier requests."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob, carol)
    before = await graph.log.last()
    [by_bob] = await posts(graph, bob, "hidden")
    await graph.reposts.repost(graph.visibility.of(carol), carol, by_bob)
    [by_carol] = await posts(graph, carol, "shown")
    await graph.moderation.suspend(bob)
    last = await graph.log.last()
    chosen = EventFilter.of(users=[bob, carol])

    async with feed_of(await another()) as fresh:
        for source in (feed, fresh):
            async with (
                following(source, chosen, before) as anonymous,
                following(source, chosen, before, alice) as viewer,
                watching(source, alice, before) as home,
            ):
                for watcher in (anonymous, viewer):
                    [update] = await watcher.take(1)
                    assert isinstance(update, PostAdded)
                    assert update.post.id == by_carol
                updates = await home.until(last)
                assert [each.post.id for each in updates if isinstance(each, PostAdded)] == [by_carol]
                assert updates[-1] == AuthorHidden(last, bob)


async def test_streams_tell_of_deletions_of_posts_of_hidden_users(graph: Graph, feed: Feed) -> None:
    """The users may be suspended or deleted: clients that have the posts must drop them."""
    gone, bob = await people(graph, "gone", "bob")
    before = await graph.log.last()
    [one], [two] = await posts(graph, gone, "a word"), await posts(graph, bob, "another")
    await settle(graph)
    chosen = EventFilter.of(users=[gone, bob])
    async with following(feed, chosen) as watcher, following(feed, EventFilter.of(keywords=["word"])) as by_word:
        await graph.moderation.suspend(bob)
        await graph.moderation.remove(two)
        await delete(graph, gone, "gone")
        await erase(graph)

        assert [(type(each), each.post) for each in await watcher.take(2)] == [
            (PostRemoved, two),
            (PostRemoved, one),
        ]
        assert [(type(each), each.post) for each in await by_word.take(1)] == [(PostRemoved, one)]
    async with following(feed, chosen, before) as replay:
        assert [(type(each), each.post) for each in await replay.take(2)] == [
            (PostRemoved, two),
            (PostRemoved, one),
        ]


async def test_streams_leave_out_deletions_across_a_block(graph: Graph, feed: Feed) -> None:
    """The deletions are left out even if the blocker is suspended."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    [first, second], [by_carol] = await posts(graph, bob, "first", "second"), await posts(graph, carol, "a post")
    async with following(feed, EventFilter.of(users=[bob, carol]), viewer=alice) as watcher:
        await graph.blocks.block(bob, alice)
        await graph.posts.delete(bob, first)
        await graph.moderation.suspend(bob)
        await graph.moderation.remove(second)
        await graph.posts.delete(carol, by_carol)
        assert [each.post for each in await watcher.take(1)] == [by_carol]


async def test_streams_know_suspensions_that_were_not_projected_when_the_process_began(
    graph: Graph, another: Open
) -> None:
    """A process died after it committed the suspension, and the user can post until a worker projects it."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob, carol)
    await append_events(graph, [UserSuspended(bob)])
    async with feed_of(await another()) as feed, watching(feed, alice) as watcher:
        await posts(graph, bob, "hidden")
        shown = await posts(graph, carol, "shown")

        [update] = await watcher.take(1)
        assert isinstance(update, PostAdded)
        assert [update.post.id] == shown


async def test_a_suspension_ends_the_streams_of_the_user(graph: Graph, feed: Feed) -> None:
    [bob] = await people(graph, "bob")
    session = await graph.sessions.start(bob)
    async with watching(feed, bob, None, session.id) as watcher:
        await graph.moderation.suspend(bob)
        with pytest.raises(SessionOver):
            await watcher.take(2)


async def test_the_event_of_a_suspension_ends_streams(graph: Graph, feed: Feed) -> None:
    """The event ends them before it is projected, while the session is still in the store."""
    [bob] = await people(graph, "bob")
    session = await graph.sessions.start(bob)
    async with watching(feed, bob, None, session.id) as watcher:
        await append_events(graph, [UserSuspended(bob)])
        with pytest.raises(SessionOver):
            await watcher.take(2)
        assert await graph.sessions.is_live(bob, session.id)


async def test_a_suspension_that_the_log_has_lost_hides_nobody(graph: Graph, feed: Feed, raw: Redis) -> None:
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    await graph.worker().drain()
    before = await raw.dump(keys.LOG)
    assert before is not None
    async with watching(feed, alice) as watcher:
        [lost] = await append_events(graph, [UserSuspended(bob)])
        assert isinstance((await watcher.take(1))[0], AuthorHidden)
        assert graph.visibility.suspended_now({bob})
        await raw.restore(keys.LOG, 0, before, replace=True)

        await reached(graph.losses.highest, lost.number)
        assert isinstance((await watcher.take(1))[0], Gap)
        assert not graph.visibility.suspended_now({bob})


async def test_a_suspension_that_the_log_has_kept_still_hides(graph: Graph, feed: Feed, raw: Redis) -> None:
    """The log has lost a later event, and no worker has projected the suspension."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    await graph.worker().drain()
    async with watching(feed, alice) as watcher:
        await append_events(graph, [UserSuspended(bob)])
        before = await raw.dump(keys.LOG)
        assert before is not None
        [lost] = await posts(graph, alice, "lost")
        await watcher.until(lost)
        await raw.restore(keys.LOG, 0, before, replace=True)

        await reached(graph.losses.highest, lost)
        assert isinstance((await watcher.take(1))[0], Gap)
        assert graph.visibility.suspended_now({bob})


async def test_a_late_client_fetches_a_page_without_an_ended_suspension(
    graph: Graph, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of the suspension is projected first, but its event is no longer in memory."""
    monkeypatch.setattr("graph.feed.reader.MAX_RECENT", 1)
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    [by_bob] = await posts(graph, bob, "shown again")
    await graph.moderation.suspend(bob)
    before = await graph.log.last()
    [end] = await append_events(graph, [UserUnsuspended(bob)])
    await append_events(graph, [PostPublished(alice, f"later {n}") for n in range(5)])

    async with watching(feed, alice, before) as watcher:
        [update] = await watcher.take(1)
        assert update == AuthorAdded(end.number, bob)
        assert by_bob in await home(graph, alice)
