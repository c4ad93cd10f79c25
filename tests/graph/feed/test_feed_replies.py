"""Replies and quotes in live streams."""

from graph import Graph
from graph.feed.feed import Feed
from graph.feed.filters import EventFilter
from graph.feed.updates import PostAdded, PostRemoved
from tests.graph.feed.watching import following, numbers, watching
from tests.support.graph_worlds import befriend, people


async def test_home_streams_send_listed_posts_only(graph: Graph, feed: Feed) -> None:
    """The same holds for deletions, in replays and live."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    start = await graph.log.last()
    root = await graph.posts.publish(alice, "root")
    expected = [root.id]
    for _ in range(2):
        async with watching(feed, alice, start) as watcher:
            mine = await graph.posts.publish(bob, "mine", quote_of=root.id)
            hidden = await graph.posts.publish(bob, "hidden", reply_to=root.id)
            listed = await graph.posts.publish(bob, "listed", reply_to=mine.id)
            await graph.posts.delete(bob, hidden.id)
            last = await graph.posts.publish(bob, "last")
            expected += [mine.id, listed.id, last.id]
            updates = await watcher.until(last.id)
            assert numbers(updates) == expected
            assert not [update for update in updates if isinstance(update, PostRemoved)]


async def test_event_streams_send_all_posts(graph: Graph, feed: Feed) -> None:
    alice, bob = await people(graph, "alice", "bob")
    start = await graph.log.last()
    root = await graph.posts.publish(alice, "root")
    reply = await graph.posts.publish(bob, "reply", reply_to=root.id)

    async with following(feed, EventFilter.of(users=[alice, bob]), start) as watcher:
        updates = await watcher.until(reply.id)

    assert [update.post.text for update in updates if isinstance(update, PostAdded)] == ["root", "reply"]


async def test_replayed_posts_have_their_present_counts(graph: Graph, feed: Feed) -> None:
    alice, bob = await people(graph, "alice", "bob")
    start = await graph.log.last()
    root = await graph.posts.publish(alice, "root")
    await graph.posts.publish(bob, "one", reply_to=root.id)
    await graph.posts.publish(bob, "two", reply_to=root.id, quote_of=root.id)

    async with watching(feed, alice, start) as watcher:
        [update] = [each for each in await watcher.until(root.id) if isinstance(each, PostAdded)]

    assert (update.post.replies, update.post.reposts, update.post.quotes) == (2, 0, 1)
