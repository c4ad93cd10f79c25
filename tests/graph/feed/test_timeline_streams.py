"""Streams of users' timelines, of users' replies, and of lists: the updates that they send."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import pytest

from graph import Graph
from graph.feed.feed import Feed
from graph.feed.updates import (
    AuthorAdded,
    AuthorHidden,
    PostAdded,
    PostRemoved,
    RepostAdded,
    RepostRemoved,
    TimelineChanged,
)
from graph.log.events import ListChanged, PostPublished
from graph.model import Post
from graph.post_lists import REPLIED
from tests.graph.feed.watching import Watcher, on_list, on_timeline
from tests.support.graph_worlds import append_events, newest, people, posts

Subscribe = Callable[[int | None], AbstractAsyncContextManager[Watcher]]
Seen = Callable[[Subscribe, Callable[[], Awaitable[object]]], Awaitable[list[tuple[type, Any]]]]


@pytest.fixture(params=[True, False], ids=["replayed", "live"])
def seen(request: pytest.FixtureRequest, graph: Graph) -> Seen:
    """Return the updates of a stream while something changes. The last change must concern the stream."""

    async def of(subscribe: Subscribe, change: Callable[[], Awaitable[object]]) -> list[tuple[type, Any]]:
        if request.param:
            start = await graph.log.last()
            await change()
            async with subscribe(start) as watcher:
                return [subject(update) for update in await watcher.until(await graph.log.last())]
        async with subscribe(None) as watcher:
            await change()
            return [subject(update) for update in await watcher.until(await graph.log.last())]

    return of


def subject(update: Any) -> tuple[type, Any]:
    """Return the type of an update, and the number of its post, repost or user."""
    found = getattr(update, "post", None) or getattr(update, "user", 0)
    return type(update), found.id if isinstance(found, Post) else found


async def repost(graph: Graph, viewer: int, post: int) -> int:
    return (await graph.reposts.repost(graph.visibility.of(viewer), viewer, post)).id


async def reply(graph: Graph, author: int, post: int) -> int:
    return (await graph.posts.publish(author, "a reply", reply_to=post)).id


async def test_the_timeline_of_a_user_has_posts_and_reposts(graph: Graph, feed: Feed, seen: Seen) -> None:
    """The timeline contains a reply only if it continues the user's own thread."""
    alice, bob = await people(graph, "alice", "bob")
    [by_bob, other], [root, gone] = await posts(graph, bob, "1", "2"), await posts(graph, alice, "root", "gone")
    undone = await repost(graph, alice, other)
    made: list[int] = []

    async def change() -> None:
        made.extend(await posts(graph, alice, "new"))
        await posts(graph, bob, "another")
        made.append(await repost(graph, alice, by_bob))
        await reply(graph, alice, by_bob)
        await graph.posts.delete(alice, gone)
        await graph.reposts.unrepost(graph.visibility.of(alice), alice, other)
        made.append(await reply(graph, alice, root))

    updates = await seen(partial(on_timeline, feed, alice), change)

    new, entry, own = made
    assert updates == [
        (PostAdded, new),
        (RepostAdded, entry),
        (PostRemoved, gone),
        (RepostRemoved, undone),
        (PostAdded, own),
    ]


async def test_the_timeline_of_replies_has_all_replies(graph: Graph, feed: Feed, seen: Seen) -> None:
    alice, bob = await people(graph, "alice", "bob")
    [root], [by_bob] = await posts(graph, alice, "root"), await posts(graph, bob, "by bob")
    gone = await reply(graph, alice, by_bob)
    made: list[int] = []

    async def change() -> None:
        await posts(graph, alice, "a post")
        made.append(await reply(graph, alice, root))
        await graph.posts.delete(alice, gone)
        await reply(graph, bob, root)
        made.append(await reply(graph, alice, by_bob))

    updates = await seen(partial(on_timeline, feed, alice, post_list=REPLIED), change)

    assert updates == [(PostAdded, made[0]), (PostRemoved, gone), (PostAdded, made[1])]


async def test_a_block_hides_the_timeline_until_it_ends(graph: Graph, feed: Feed, seen: Seen) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    made: list[int] = []

    async def change() -> None:
        await graph.blocks.block(bob, alice)
        await posts(graph, alice, "hidden")
        await graph.blocks.mute(bob, carol)
        await graph.blocks.unblock(bob, alice)
        made.extend(await posts(graph, alice, "shown"))

    updates = await seen(partial(on_timeline, feed, alice, viewer=bob), change)

    shown = [update for update in updates if update[0] is not PostAdded]
    assert shown == [(AuthorHidden, alice), (AuthorAdded, alice)]
    assert updates[-1] == (PostAdded, made[0])


async def test_reposts_of_hidden_users_are_left_out(graph: Graph, feed: Feed, seen: Seen) -> None:
    """A viewer who blocks a user does not see the user's posts in the timelines of others. Mutes do not matter."""
    alice, bob, carol, dave = await people(graph, "alice", "bob", "carol", "dave")
    [by_carol], [by_dave] = await posts(graph, carol, "by carol"), await posts(graph, dave, "by dave")
    await graph.blocks.block(bob, carol)
    await graph.blocks.mute(bob, dave)
    made: list[int] = []

    async def change() -> None:
        await repost(graph, alice, by_carol)
        made.append(await repost(graph, alice, by_dave))

    assert await seen(partial(on_timeline, feed, alice, viewer=bob), change) == [(RepostAdded, made[0])]


async def test_suspensions_are_told_to_anonymous_viewers(graph: Graph, feed: Feed, seen: Seen) -> None:
    """This includes suspensions of other users, because the timeline may contain reposts of their posts."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, alice, "removed later")

    async def change() -> None:
        await graph.moderation.suspend(bob)
        await graph.moderation.suspend(alice)
        await graph.moderation.remove(post)
        await graph.moderation.unsuspend(alice)

    updates = await seen(partial(on_timeline, feed, alice), change)

    assert [update for update in updates if update[0] is not PostRemoved] == [
        (AuthorHidden, bob),
        (AuthorHidden, alice),
        (AuthorAdded, alice),
    ]


async def test_the_timeline_of_a_list_has_the_posts_of_its_members(graph: Graph, feed: Feed, seen: Seen) -> None:
    """Posts of muted members and reposts of muted users' posts are left out."""
    alice, bob, carol, dave = await people(graph, "alice", "bob", "carol", "dave")
    friends = await graph.lists.create(alice, "friends", [bob, carol])
    await graph.blocks.mute(alice, carol)
    [by_carol], [by_dave] = await posts(graph, carol, "by carol"), await posts(graph, dave, "by dave")
    made: list[int] = []

    async def change() -> None:
        made.extend(await posts(graph, bob, "by bob"))
        await posts(graph, carol, "muted")
        await posts(graph, dave, "not a member")
        await repost(graph, bob, by_carol)
        made.append(await repost(graph, bob, by_dave))

    updates = await seen(partial(on_list, feed, alice, friends.id), change)

    assert updates == [(PostAdded, made[0]), (RepostAdded, made[1])]


async def test_muting_hides_a_member_of_a_list(graph: Graph, feed: Feed, seen: Seen) -> None:
    alice, bob = await people(graph, "alice", "bob")
    friends = await graph.lists.create(alice, "friends", [bob])

    async def change() -> None:
        await graph.blocks.mute(alice, bob)
        await graph.blocks.unmute(alice, bob)

    assert await seen(partial(on_list, feed, alice, friends.id), change) == [(AuthorHidden, bob), (AuthorAdded, bob)]


async def test_a_list_that_changes_is_fetched_again(graph: Graph, feed: Feed, seen: Seen) -> None:
    """Clients fetch it when members are added or removed and when the list is deleted, but not when it is renamed."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    friends, others = [await graph.lists.create(alice, name, [bob]) for name in ("friends", "others")]
    made: list[int] = []

    async def change() -> None:
        await graph.lists.update(alice, friends.id, name="close friends")
        await graph.lists.update(alice, others.id, added=[carol])
        await graph.lists.update(alice, friends.id, added=[carol], removed=[bob])
        await posts(graph, bob, "no longer")
        made.extend(await posts(graph, carol, "by carol"))
        await graph.lists.delete(alice, friends.id)

    updates = await seen(partial(on_list, feed, alice, friends.id), change)

    assert [update for update in updates if update[0] is TimelineChanged] == [(TimelineChanged, 0)] * 2
    assert {update for update in updates if update[0] is not TimelineChanged} <= {(PostAdded, made[0])}


async def test_members_come_and_go(graph: Graph, feed: Feed, seen: Seen) -> None:
    """Later posts are those of the new members."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    friends = await graph.lists.create(alice, "friends", [bob])
    made: list[int] = []

    async def change() -> None:
        await graph.lists.update(alice, friends.id, added=[carol], removed=[bob])
        await posts(graph, bob, "no longer")
        made.extend(await posts(graph, carol, "by carol"))

    assert await seen(partial(on_list, feed, alice, friends.id), change) == [(TimelineChanged, 0), (PostAdded, made[0])]


async def test_a_list_that_is_fetched_again_shows_what_is_not_projected_yet(graph: Graph, feed: Feed) -> None:
    """Otherwise the page would lack posts that the stream does not send again."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    friends = await graph.lists.create(alice, "friends", [bob])
    async with on_list(feed, alice, friends.id) as watcher:
        [published, _] = await append_events(
            graph, [PostPublished(bob, "unprojected"), ListChanged(alice, friends.id, added=(carol,))]
        )
        updates = await watcher.take(2)

        assert [type(update) for update in updates] == [PostAdded, TimelineChanged]
        view = graph.visibility.of(alice)
        page = await graph.list_timelines.page(view, alice, friends.id, newest(9))
        assert [post.id for post in page.items] == [published.number]
        assert await graph.lists.counts(alice, [friends.id]) == [2]
