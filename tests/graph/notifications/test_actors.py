"""The users of notifications: those who follow, like and repost, and those who are left out."""

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.log.events import Liked, PostDeleted, Reposted
from graph.log.notification_groups import Group, NotificationKind
from graph.projections.mode import Mode
from tests.graph.notifications.reading import all_of, mention, newest, summary, view
from tests.support.graph_worlds import Open, append_events, archive_log, befriend, counted, crowd, people, posts

MENTION, FOLLOW = NotificationKind.MENTION, NotificationKind.FOLLOW


async def test_muted_and_blocked_users_are_left_out(graph: Graph, raw: Redis) -> None:
    """The number of users includes users beyond the newest ones that are read."""
    alice, *others = await crowd(graph, 16)
    for fan in others[:14]:
        await befriend(graph, fan, alice)
    reply = await mention(graph, others[13], alice)
    await mention(graph, others[0], alice)
    await raw.zadd(keys.muting(alice), {str(user): 1 for user in others[3:14]})
    shown = await all_of(graph, alice)
    assert [(each.kind, each.actors, each.actors_count) for each in shown] == [
        (MENTION, (others[0],), 1),
        (FOLLOW, tuple(others[2::-1]), 3),
    ]
    assert await graph.notifications.unread_count(view(graph, alice)) == 2
    [gone] = await graph.notifications.get_many(view(graph, alice), [Group(MENTION, reply)])
    assert gone is None
    await raw.zadd(keys.blockers(alice), {str(user): 1 for user in others[:3]})
    assert await all_of(graph, alice) == []
    assert await graph.notifications.unread_count(view(graph, alice)) == 0


async def test_likes_of_a_post_are_one_notification(graph: Graph) -> None:
    """The notification moves up with each like, and vanishes with the last like or with the post."""
    alice, *fans = await crowd(graph, 14)
    first, second = await posts(graph, alice, "first", "second")
    for fan in fans[:12]:
        await graph.likes.like(fan, first)
    await graph.likes.like(fans[0], second)
    await graph.likes.like(alice, second)
    assert await summary(graph, alice) == [("LIKE", (fans[0],), 1), ("LIKE", tuple(fans[11:1:-1]), 12)]
    await graph.likes.like(fans[12], first)
    [moved, _] = await all_of(graph, alice)
    assert (moved.subject, moved.actors_count) == (first, 13)
    assert moved.post is not None
    assert moved.post.author == alice
    assert await graph.notifications.unread_count(view(graph, alice)) == 2
    await graph.likes.unlike(fans[0], second)
    await graph.likes.unlike(alice, second)
    await graph.posts.delete(alice, first)
    assert await all_of(graph, alice) == []
    assert await graph.notifications.unread_count(view(graph, alice)) == 0


async def test_the_own_like_notifies_nobody(graph: Graph) -> None:
    [alice] = await people(graph, "alice")
    [post] = await posts(graph, alice, "mine")
    await graph.likes.like(alice, post)
    assert await all_of(graph, alice) == []


async def test_likes_by_muted_users_are_left_out(graph: Graph, raw: Redis) -> None:
    """They are left out even if all of the newest ten are muted."""
    alice, *fans = await crowd(graph, 13)
    [post] = await posts(graph, alice, "post")
    for fan in fans:
        await graph.likes.like(fan, post)
    await raw.zadd(keys.muting(alice), {str(fan): 1 for fan in fans[1:]})
    assert await summary(graph, alice) == [("LIKE", (fans[0],), 1)]
    await raw.zadd(keys.muting(alice), {str(fans[0]): 1})
    assert await summary(graph, alice) == []


async def test_the_floor_of_likes_is_no_user(graph: Graph, raw: Redis) -> None:
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, alice, "post")
    await graph.likes.like(bob, post)
    await raw.zadd(keys.likes(post), {"f": 1})
    assert await summary(graph, alice) == [("LIKE", (bob,), 1)]


async def test_costs_of_likes(graph: Graph) -> None:
    """An unread group takes 1 command, a group of a page 2, and the notice none in addition to those of the like.

    The view takes 2: the viewer's blocks and mutes, and the suspensions.
    """
    alice, bob = await people(graph, "alice", "bob")
    published = await posts(graph, alice, *map(str, range(20)))
    for post in published:
        await graph.likes.like(bob, post)
    async with counted(graph) as cost:
        assert await graph.notifications.unread_count(view(graph, alice)) == 20
    assert (cost.round_trips, cost.commands) == (2, 1 + 20 + 2)
    async with counted(graph) as cost:
        assert len((await graph.notifications.page(view(graph, alice), newest(100))).items) == 20
    assert (cost.round_trips, cost.commands) == (2, 2 + 2 * 20 + 2)
    [event] = await append_events(graph, [Liked(bob, published[0], alice)])
    async with counted(graph) as cost:
        await graph.projections.project([event], Mode.WORKER)
    assert cost.round_trips == 1


async def test_a_post_is_read_once_for_its_likes_and_reposts(graph: Graph) -> None:
    """Each group has its own set. The author is read from the newest repost."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, alice, "post")
    await graph.likes.like(bob, post)
    await repost(graph, bob, post)
    async with counted(graph) as cost:
        assert len(await all_of(graph, alice)) == 2
    assert (cost.round_trips, cost.commands) == (2, 2 + 1 + 2 + 1 + 2)


async def repost(graph: Graph, viewer: int, post: int) -> int:
    """Repost a post, and return the id of the plain repost."""
    return (await graph.reposts.repost(graph.visibility.of(viewer), viewer, post)).id


async def unrepost(graph: Graph, viewer: int, post: int) -> None:
    """Take a repost back."""
    await graph.reposts.unrepost(graph.visibility.of(viewer), viewer, post)


async def test_reposts_of_a_post_are_one_notification(graph: Graph) -> None:
    """The notification moves up with each repost, and vanishes with the last one. A quote has its own notification."""
    alice, bob, carol, dave = await people(graph, "alice", "bob", "carol", "dave")
    first, second = await posts(graph, alice, "first", "second")
    await repost(graph, bob, first)
    await repost(graph, carol, second)
    await graph.posts.publish(dave, "look", quote_of=first)
    last = await repost(graph, carol, first)
    assert await summary(graph, alice) == [
        ("REPOST", (carol, bob), 2),
        ("QUOTE", (dave,), 1),
        ("REPOST", (carol,), 1),
    ]
    [shown, *_] = await all_of(graph, alice)
    assert (shown.subject, shown.number) == (first, last)
    assert shown.post is not None
    assert shown.post.id == first
    assert await graph.notifications.unread_count(view(graph, alice)) == 3
    await unrepost(graph, carol, second)
    await unrepost(graph, bob, first)
    assert await summary(graph, alice) == [("REPOST", (carol,), 1), ("QUOTE", (dave,), 1)]
    await unrepost(graph, carol, first)
    assert await summary(graph, alice) == [("QUOTE", (dave,), 1)]
    assert await graph.notifications.unread_count(view(graph, alice)) == 1


async def test_a_repost_that_is_taken_back_does_not_move_the_notification(graph: Graph) -> None:
    """The position is that of the newest repost that was its user's first."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    [post] = await posts(graph, alice, "post")
    await repost(graph, carol, post)
    first = await repost(graph, bob, post)
    await unrepost(graph, bob, post)
    await repost(graph, bob, post)
    await unrepost(graph, bob, post)
    [shown] = await all_of(graph, alice)
    assert (shown.number, shown.actors, shown.actors_count) == (first, (carol,), 1)


@pytest.mark.parametrize("ended", [False, True], ids=["the reposts stand", "the reposts have ended"])
async def test_reposts_vanish_with_their_original(graph: Graph, ended: bool) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    [post] = await posts(graph, alice, "post")
    await repost(graph, bob, post)
    await graph.posts.publish(carol, "quote", quote_of=post)
    await graph.posts.delete(alice, post)
    if ended:
        await graph.worker().drain()
    assert await summary(graph, alice) == [("QUOTE", (carol,), 1)]
    assert await graph.notifications.unread_count(view(graph, alice)) == 1


async def test_a_late_repost_of_a_deleted_post_notifies_nobody(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, alice, "post")
    events = await append_events(graph, [PostDeleted(alice, post), Reposted(bob, post, alice)])
    for event in events:
        await graph.projections.project([event], Mode.WORKER)
    assert await all_of(graph, alice) == []
    assert await graph.notifications.unread_count(view(graph, alice)) == 0


async def test_the_own_repost_notifies_nobody(graph: Graph) -> None:
    """The author's own repost is not listed among the reposts of others either."""
    alice, bob = await people(graph, "alice", "bob")
    first, second = await posts(graph, alice, "first", "second")
    await repost(graph, alice, first)
    assert await all_of(graph, alice) == []
    await repost(graph, bob, second)
    await repost(graph, alice, second)
    assert await summary(graph, alice) == [("REPOST", (bob,), 1)]


async def test_reposts_by_muted_and_blocked_users_are_left_out(graph: Graph) -> None:
    """Even the newest ten are left out, and can reappear. Older users who were not read are counted."""
    alice, *fans = await crowd(graph, 13)
    [post] = await posts(graph, alice, "post")
    for fan in fans:
        await repost(graph, fan, post)
    for fan in fans[1:]:
        await graph.blocks.mute(alice, fan)
    assert await summary(graph, alice) == [("REPOST", (fans[0],), 1)]
    await graph.blocks.block(fans[0], alice)
    assert await summary(graph, alice) == []
    assert await graph.notifications.unread_count(view(graph, alice)) == 0
    await graph.blocks.unmute(alice, fans[5])
    assert await summary(graph, alice) == [("REPOST", (fans[5],), 3)]


async def test_quotes_are_not_counted_among_reposts(graph: Graph) -> None:
    """The number of users is exact with any number of older and newer quotes, and they cost nothing."""
    alice, *fans = await crowd(graph, 14)
    [post] = await posts(graph, alice, "post")
    await graph.posts.publish(fans[0], "an older quote", quote_of=post)
    for fan in fans[:12]:
        await repost(graph, fan, post)
    for n in range(12):
        await graph.posts.publish(fans[12], f"quote {n}", quote_of=post)
    assert ("REPOST", tuple(fans[11:1:-1]), 12) in await summary(graph, alice)
    await unrepost(graph, fans[11], post)
    async with counted(graph) as cost:
        assert ("REPOST", tuple(fans[10:0:-1]), 11) in await summary(graph, alice)
    assert cost.round_trips == 3
    [shown] = await graph.notifications.get_many(view(graph, alice), [Group(NotificationKind.REPOST, post)])
    assert shown is not None
    assert shown.actors_count == 11
    assert await graph.notifications.unread_count(view(graph, alice)) == 14


async def test_quotes_that_fill_their_hot_window_leave_the_reposts_in_the_store(another: Open) -> None:
    graph = await another(hot_posts=2, hot_slack=1, hot_newest=1)
    alice, bob, carol, dave = await people(graph, "alice", "bob", "carol", "dave")
    [post] = await posts(graph, alice, "post")
    await repost(graph, bob, post)
    await repost(graph, carol, post)
    for n in range(4):
        await graph.posts.publish(dave, f"quote {n}", quote_of=post)
    await graph.worker().drain()
    await archive_log(graph)
    assert await graph.store.read([("ZCARD", key(post)) for key in (keys.reposts, keys.quotes)]) == [2, 1 + 2]
    assert (await summary(graph, alice))[-1] == ("REPOST", (carol, bob), 2)
    assert await graph.notifications.unread_count(view(graph, alice)) == 5
    await graph.blocks.mute(alice, carol)
    assert (await summary(graph, alice))[-1] == ("REPOST", (bob,), 1)
    await unrepost(graph, bob, post)
    assert "REPOST" not in {kind for kind, *_ in await summary(graph, alice)}


async def test_archived_reposts_still_notify(another: Open) -> None:
    """The reposts' records are in the archive only."""
    graph = await another(hot_posts=1, hot_slack=1, hot_newest=1)
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    [post] = await posts(graph, alice, "post")
    reposts = []
    for user in (bob, carol):
        reposts.append(await repost(graph, user, post))
        await posts(graph, user, "1", "2", "3")
    await graph.worker().drain()
    await archive_log(graph)
    assert await graph.store.read([("HEXISTS", keys.post(each), "author") for each in reposts]) == [0, 0]
    [(kind, actors, count)] = await summary(graph, alice)
    assert (kind, count) == ("REPOST", 2)
    assert set(actors) <= {bob, carol}
    assert actors[0] == carol


async def test_costs_of_reposts(graph: Graph) -> None:
    """Reposts take no more round trips than other groups, unless older reposts are needed, and none for the notice."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    published = await posts(graph, alice, *map(str, range(20)))
    for post in published[:-1]:
        await repost(graph, bob, post)
    async with counted(graph) as cost:
        assert await graph.notifications.unread_count(view(graph, alice)) == 19
    assert (cost.round_trips, cost.commands) == (2, 1 + 2 * 19 + 2), "the newest repost, and its original"
    async with counted(graph) as cost:
        assert len((await graph.notifications.page(view(graph, alice), newest(100))).items) == 19
    assert (cost.round_trips, cost.commands) == (2, 2 + 3 * 19 + 2)
    for post in published[:3]:
        await repost(graph, carol, post)
    async with counted(graph) as cost:
        assert await graph.notifications.unread_count(view(graph, alice)) == 19
    assert (cost.round_trips, cost.commands) == (2, 1 + 2 * 19 + 2)
    async with counted(graph) as cost:
        assert (await all_of(graph, alice))[0].actors == (carol, bob)
    assert (cost.round_trips, cost.commands) == (3, 2 + 3 * 19 + 2 + 3)
    await graph.blocks.mute(alice, carol)
    async with counted(graph) as cost:
        assert await graph.notifications.unread_count(view(graph, alice)) == 19
    assert (cost.round_trips, cost.commands) == (4, 1 + 2 * 19 + 2 + 2 * 3), "the older reposts, and their authors"
    [event] = await append_events(graph, [Reposted(bob, published[-1], alice)])
    async with counted(graph) as cost:
        await graph.projections.project([event], Mode.CATCH_UP)
    assert cost.round_trips == 2
