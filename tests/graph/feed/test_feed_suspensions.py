"""Suspensions in live streams: what the user wrote is left out, and clients learn what to drop and to fetch again."""

import pytest

from graph import Graph
from graph.errors import SessionOver
from graph.feed.feed import Feed
from graph.feed.filters import EventFilter
from graph.feed.updates import AuthorAdded, AuthorHidden, PostAdded, PostPublished
from tests.graph.feed.watching import feed_of, following, watching
from tests.support.graph_worlds import Open, befriend, people, posts


async def test_home_streams_tell_of_suspensions(graph: Graph, feed: Feed) -> None:
    """Also those of viewers who do not follow the user: they may have reposts of the user's posts."""
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
    """In replays too, for viewers and anonymous clients, and in a process that has served nobody before."""
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
                    assert isinstance(update, PostPublished)
                    assert update.post.id == by_carol
                updates = await home.until(last)
                assert [each.post.id for each in updates if isinstance(each, PostAdded)] == [by_carol]
                assert updates[-1] == AuthorHidden(last, bob)


async def test_a_suspension_ends_the_streams_of_the_user(graph: Graph, feed: Feed) -> None:
    [bob] = await people(graph, "bob")
    session = await graph.sessions.start(bob)
    async with watching(feed, bob, None, session.id) as watcher:
        await graph.moderation.suspend(bob)
        with pytest.raises(SessionOver):
            await watcher.take(2)
