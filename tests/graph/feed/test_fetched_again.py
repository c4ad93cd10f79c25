"""Home pages that clients fetch again because of AuthorAdded or Gap."""

import pytest

from graph import Graph
from graph.feed.updates import AuthorAdded, Gap
from graph.log.events import Followed, PostDeleted, PostPublished
from tests.graph.feed.watching import feed_of, watching
from tests.support.graph_worlds import Open, append_events, befriend, cached, home, people, posts


async def test_a_page_refetched_after_a_follow_contains_all_streamed_posts(graph: Graph, another: Open) -> None:
    """The page has them even if a process died between committing and projecting a post, a follow and a deletion."""
    reading = await another()
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, carol)
    [kept, gone] = await posts(graph, carol, "kept", "gone")
    await graph.worker().drain()
    await cached(graph, alice)
    async with feed_of(reading) as feed, watching(feed, alice) as watcher:
        assert await watcher.silent()
        committed = await append_events(
            graph,
            [PostPublished(bob, "bob's"), PostPublished(carol, "new"), PostDeleted(carol, gone), Followed(alice, bob)],
        )
        updates = await watcher.take(3)

        assert isinstance(updates[-1], AuthorAdded)
        assert await home(graph, alice) == [committed[1].number, committed[0].number, kept]


async def test_a_page_refetched_after_a_follow_contains_posts_that_left_the_memory(
    graph: Graph, another: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers may be behind by more events than a process keeps in memory."""
    monkeypatch.setattr("graph.feed.reader.MAX_RECENT", 1)
    reading = await another()
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, carol)
    [gone] = await posts(graph, carol, "gone")
    async with feed_of(reading) as feed, watching(feed, alice) as watcher:
        committed = await append_events(
            graph,
            [
                PostPublished(bob, "bob's"),
                PostPublished(carol, "carol's"),
                PostPublished(alice, "alice's"),
                PostDeleted(carol, gone),
                *[PostPublished(bob, f"later {n}") for n in range(5)],
                Followed(alice, bob),
            ],
        )
        published = [event.number for event in committed if isinstance(event.body, PostPublished)]
        updates = await watcher.take(4)

        assert isinstance(updates[-1], AuthorAdded)
        assert await home(graph, alice) == sorted(published, reverse=True)


async def test_a_page_refetched_after_a_gap_contains_posts_that_no_worker_has_projected(
    graph: Graph, another: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client has received the posts, and the page replaces its content."""
    monkeypatch.setattr("graph.feed.buffer.MAX_BYTES", 1500)
    reading = await another()
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    async with feed_of(reading) as feed, watching(feed, alice) as slow, watching(feed, alice) as fast:
        [received] = await append_events(graph, [PostPublished(bob, "received")])
        assert [update.number for update in await slow.take(1)] == [received.number]
        assert await slow.silent()
        missed = await append_events(graph, [PostPublished(bob, f"missed {n}") for n in range(8)])
        await fast.until(missed[-1].number)

        [gap] = await slow.take(1)
        assert isinstance(gap, Gap)
        assert received.number in await home(graph, alice)
