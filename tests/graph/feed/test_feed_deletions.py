"""Deletions of accounts in live streams: clients learn which posts to drop, and the streams of the user end."""

import pytest

from graph import Graph
from graph.errors import SessionOver
from graph.feed.feed import Feed
from graph.feed.filters import EventFilter
from graph.feed.updates import AuthorHidden, PostAdded
from graph.log.account_events import UserDeleted, login_hash
from tests.graph.feed.watching import feed_of, following, watching
from tests.support.graph_worlds import PASSWORD, Open, append_events, befriend, people, posts


async def test_home_streams_tell_of_deleted_users(graph: Graph, feed: Feed, another: Open) -> None:
    """Viewers who do not follow the user get the update too, and so do replays, which leave out the user's posts."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob, carol)
    before = await graph.log.last()
    [by_bob] = await posts(graph, bob, "hidden")
    await graph.reposts.repost(graph.visibility.of(carol), carol, by_bob)
    [by_carol] = await posts(graph, carol, "shown")
    async with watching(feed, alice) as follower, watching(feed, carol) as other:
        await graph.account_deletion.delete(bob, PASSWORD)
        last = await graph.log.last()
        for watcher in (follower, other):
            assert await watcher.take(1) == [AuthorHidden(last, bob)]
    chosen = EventFilter.of(users=[bob, carol])

    async with feed_of(await another()) as fresh:
        for source in (feed, fresh):
            async with following(source, chosen, before) as events, watching(source, alice, before) as home:
                [update] = await events.take(1)
                assert isinstance(update, PostAdded)
                assert update.post.id == by_carol
                updates = await home.until(last)
                assert [each.post.id for each in updates if isinstance(each, PostAdded)] == [by_carol]
                assert updates[-1] == AuthorHidden(last, bob)


async def test_a_deletion_ends_the_streams_of_the_user(graph: Graph, feed: Feed) -> None:
    """The event ends them before it is projected, while the session is still in the store."""
    [bob] = await people(graph, "bob")
    session = await graph.sessions.start(bob)
    async with watching(feed, bob, None, session.id) as watcher:
        await append_events(graph, [UserDeleted(bob, login_hash("bob"))])
        with pytest.raises(SessionOver):
            await watcher.take(2)
        assert await graph.sessions.is_live(bob, session.id)
