"""Streams of threads: replies, counts, and the deletion of the post."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from graph import Graph
from graph.feed import combined_stream
from graph.feed.feed import Feed
from graph.feed.updates import AuthorAdded, AuthorHidden, PostChanged, PostRemoved, ReplyAdded
from graph.log.events import Liked, PostPublished
from graph.model import Post
from tests.graph.feed.watching import Watcher, on_thread
from tests.support.graph_worlds import append_events, people, posts

LONG = 1.0  # enough for a busy machine to commit some events, in seconds

Seen = Callable[[int, int | None, Callable[[], Awaitable[object]]], Awaitable[list[Any]]]


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send updates more often than once a second."""
    monkeypatch.setattr(combined_stream, "SEND_SECONDS", 0.1)


@pytest.fixture(params=[True, False], ids=["replayed", "live"])
def seen(request: pytest.FixtureRequest, graph: Graph, feed: Feed) -> Seen:
    """Return the updates of a thread, without those of counts, while something changes. The last change is a reply."""

    async def until_last(watcher: Watcher, last: int) -> list[Any]:
        found: list[Any] = []
        while not found or found[-1].number < last:
            found += await watcher.take(1)
        return [subject(update) for update in found if not isinstance(update, PostChanged)]

    async def of(post: int, viewer: int | None, change: Callable[[], Awaitable[object]]) -> list[Any]:
        if request.param:
            start = await graph.log.last()
            await change()
            async with on_thread(feed, post, start, viewer) as watcher:
                return await until_last(watcher, await graph.log.last())
        async with on_thread(feed, post, None, viewer) as watcher:
            await change()
            return await until_last(watcher, await graph.log.last())

    return of


def subject(update: Any) -> tuple[type, Any]:
    """Return the type of an update, and the number of its post or user."""
    found = getattr(update, "post", None) or getattr(update, "user", 0)
    return type(update), found.id if isinstance(found, Post) else found


async def reply(graph: Graph, author: int, post: int) -> int:
    return (await graph.posts.publish(author, "a reply", reply_to=post)).id


async def test_direct_replies_come_and_go(graph: Graph, seen: Seen) -> None:
    """Replies to replies, and to other posts, are not sent."""
    alice, bob = await people(graph, "alice", "bob")
    [post, other] = await posts(graph, alice, "post", "other")
    gone = await reply(graph, bob, post)
    made: list[int] = []

    async def change() -> None:
        made.append(await reply(graph, bob, post))
        await reply(graph, bob, other)
        await reply(graph, alice, made[0])
        await graph.posts.delete(bob, gone)
        made.append(await reply(graph, alice, post))

    assert await seen(post, None, change) == [(ReplyAdded, made[0]), (PostRemoved, gone), (ReplyAdded, made[1])]


async def test_replies_of_hidden_users_are_left_out(graph: Graph, seen: Seen) -> None:
    alice, bob, carol, dave, erin = await people(graph, "alice", "bob", "carol", "dave", "erin")
    [post] = await posts(graph, alice, "post")
    await graph.blocks.block(bob, erin)
    made: list[int] = []

    async def change() -> None:
        await reply(graph, erin, post)
        await graph.blocks.block(bob, carol)
        await reply(graph, carol, post)
        await graph.blocks.mute(bob, dave)
        made.append(await reply(graph, dave, post))
        await graph.blocks.unblock(bob, carol)
        await graph.blocks.block(bob, carol)
        made.append(await reply(graph, alice, post))

    updates = await seen(post, bob, change)

    assert updates == [
        (AuthorHidden, carol),
        (ReplyAdded, made[0]),
        (AuthorAdded, carol),
        (AuthorHidden, carol),
        (ReplyAdded, made[1]),
    ]


@pytest.mark.parametrize("name", ["like", "unlike", "repost", "unrepost", "quote", "reply", "hidden reply", "deletion"])
@pytest.mark.parametrize("replayed", [True, False])
async def test_every_change_of_a_count_is_told(graph: Graph, feed: Feed, name: str, replayed: bool) -> None:
    """When the update is sent, a client already reads the new counts."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    [post] = await posts(graph, alice, "post")
    view = graph.visibility.of(bob)
    await graph.blocks.block(carol, alice)
    by_bob = await reply(graph, bob, post)
    if name in ("unlike", "unrepost"):
        await graph.likes.like(bob, post)
        await graph.reposts.repost(view, bob, post)
    changes: dict[str, Callable[[], Awaitable[object]]] = {
        "like": lambda: graph.likes.like(bob, post),
        "unlike": lambda: graph.likes.unlike(bob, post),
        "repost": lambda: graph.reposts.repost(view, bob, post),
        "unrepost": lambda: graph.reposts.unrepost(view, bob, post),
        "quote": lambda: graph.posts.publish(bob, "a quote", quote_of=post),
        "reply": lambda: reply(graph, bob, post),
        "hidden reply": lambda: reply(graph, bob, post),
        "deletion": lambda: graph.posts.delete(bob, by_bob),
    }
    if name == "hidden reply":
        await graph.blocks.block(carol, bob)
    [before] = await graph.posts.counts([post])
    start = await graph.log.last()
    if replayed:
        await changes[name]()
    async with on_thread(feed, post, start if replayed else None, carol) as watcher:
        if not replayed:
            await changes[name]()
        [update, *_] = await watcher.take(1)
    assert update == PostChanged(await graph.log.last() - 1, post)
    assert await graph.posts.counts([post]) != [before]


async def test_counts_are_sent_once_for_many_changes(graph: Graph, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combined_stream, "SETTLE_SECONDS", LONG)
    alice, *fans = await people(graph, "alice", *(f"fan{n}" for n in range(5)))
    [post] = await posts(graph, alice, "post")
    async with on_thread(feed, post) as watcher:
        for fan in fans:
            await graph.likes.like(fan, post)
        last = await reply(graph, alice, post)
        updates = await watcher.take(2)
    assert [subject(update) for update in updates] == [(PostChanged, post), (ReplyAdded, last)]


async def test_a_client_that_resumes_after_any_update_gets_the_new_counts(graph: Graph, feed: Feed) -> None:
    """The cursor of the new counts is before everything that they include, so nothing is skipped."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, alice, "post")
    start = await graph.log.last()
    await graph.likes.like(bob, post)
    await reply(graph, bob, post)
    async with on_thread(feed, post, start) as watcher:
        [counts, _] = await watcher.take(2)
    async with on_thread(feed, post, counts.number) as watcher:
        again = await watcher.take(2)
    assert [type(update) for update in again] == [PostChanged, ReplyAdded]


async def test_a_reply_that_is_deleted_before_it_is_sent_is_left_out(
    graph: Graph, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(combined_stream, "SETTLE_SECONDS", LONG)
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, alice, "post")
    async with on_thread(feed, post) as watcher:
        gone = await reply(graph, bob, post)
        await graph.posts.delete(bob, gone)
        updates = await watcher.take(2)
    assert [subject(update) for update in updates] == [(PostChanged, post), (PostRemoved, gone)]


async def test_streams_of_a_thread_share_their_updates(graph: Graph, feed: Feed) -> None:
    """A reply to a thread with many readers therefore costs little more than one with a single reader."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, alice, "post")
    async with AsyncExitStack() as stack:
        watchers = [await stack.enter_async_context(on_thread(feed, post)) for _ in range(5)]
        taken = asyncio.gather(*(watcher.take(2) for watcher in watchers))
        await reply(graph, bob, post)
        received = await taken
    assert len({id(update) for updates in received for update in updates}) == 2


async def test_both_sides_of_a_block_are_told_about_the_other(graph: Graph, feed: Feed) -> None:
    """Their streams share what is read, but not these updates."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    [post] = await posts(graph, carol, "post")
    async with on_thread(feed, post, viewer=alice) as of_alice, on_thread(feed, post, viewer=bob) as of_bob:
        taken = asyncio.gather(of_alice.take(1), of_bob.take(1))
        await graph.blocks.block(alice, bob)
        assert [[subject(update) for update in each] for each in await taken] == [
            [(AuthorHidden, bob)],
            [(AuthorHidden, alice)],
        ]


async def test_replies_of_users_who_are_hidden_before_they_are_sent_are_left_out(
    graph: Graph, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(combined_stream, "SETTLE_SECONDS", LONG)
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, alice, "post")
    async with on_thread(feed, post) as watcher:
        gone = await reply(graph, bob, post)
        await graph.moderation.suspend(bob)
        await graph.moderation.remove(gone)
        updates = await watcher.take(2)
    assert [subject(update) for update in updates] == [(PostChanged, post), (AuthorHidden, bob)]


async def test_a_slow_client_gets_no_reply_that_was_deleted_meanwhile(
    graph: Graph, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream checks again before it sends updates that have waited."""
    monkeypatch.setattr(combined_stream, "SETTLE_SECONDS", LONG)
    monkeypatch.setattr(combined_stream, "RECHECK_SECONDS", 0.0)
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, alice, "post")
    async with on_thread(feed, post) as watcher:
        kept, gone = await reply(graph, bob, post), await reply(graph, bob, post)
        assert [subject(update) for update in await watcher.take(2)] == [(PostChanged, post), (ReplyAdded, kept)]
        await graph.posts.delete(bob, gone)
        updates = await watcher.take(2)
    assert [subject(update) for update in updates] == [(PostChanged, post), (PostRemoved, gone)]


async def test_many_changes_of_counts_are_one_update(graph: Graph, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that resumes on a popular post gets one update of its counts, however many it missed."""
    monkeypatch.setattr(combined_stream, "MAX_WAITING", 3)
    monkeypatch.setattr(combined_stream, "SETTLE_SECONDS", LONG)
    alice, *fans = await people(graph, "alice", *(f"fan{n}" for n in range(6)))
    [post] = await posts(graph, alice, "post")
    start = await graph.log.last()
    for fan in fans:
        await graph.likes.like(fan, post)
    last = await reply(graph, alice, post)
    async with on_thread(feed, post, start) as watcher:
        updates = await watcher.take(2)
    assert [subject(update) for update in updates] == [(PostChanged, post), (ReplyAdded, last)]


async def test_the_counts_of_a_hidden_user_are_hidden(graph: Graph, feed: Feed) -> None:
    """Others may like the post meanwhile."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    [post] = await posts(graph, alice, "post")
    async with on_thread(feed, post, viewer=bob, author=alice) as watcher:
        await graph.blocks.block(alice, bob)
        assert [subject(update) for update in await watcher.take(1)] == [(AuthorHidden, alice)]
        await graph.likes.like(carol, post)
        assert await watcher.silent()
        await graph.blocks.unblock(alice, bob)
        assert [subject(update) for update in await watcher.take(1)] == [(AuthorAdded, alice)]


async def test_updates_that_are_sent_together_are_in_order(
    graph: Graph, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds even if an update that changes no count comes first."""
    monkeypatch.setattr(combined_stream, "SETTLE_SECONDS", LONG)
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    [post] = await posts(graph, alice, "post")
    async with on_thread(feed, post, viewer=bob) as watcher:
        await graph.blocks.block(bob, carol)
        await graph.likes.like(bob, post)
        updates = await watcher.take(2)
    assert [subject(update) for update in updates] == [(PostChanged, post), (AuthorHidden, carol)]
    assert updates[0].number < updates[1].number


async def test_the_deletion_of_the_post_is_told(graph: Graph, seen: Seen) -> None:
    """Changes of its counts are not sent."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, alice, "post")

    async def change() -> None:
        await graph.likes.like(bob, post)
        await graph.posts.delete(alice, post)

    assert await seen(post, None, change) == [(PostRemoved, post)]


async def test_counts_that_are_not_projected_are_projected_first(graph: Graph, feed: Feed) -> None:
    """The process that committed an event may have died."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, alice, "post")
    async with on_thread(feed, post) as watcher:
        body = PostPublished(
            bob, "a reply", reply_to=post, root=post, reply_to_author=alice, root_author=alice, listed=False
        )
        await append_events(graph, [Liked(bob, post, alice), body])
        await watcher.take(2)
        [counts] = await graph.posts.counts([post])
    assert counts is not None
    assert (counts.likes, counts.replies) == (1, 1)
