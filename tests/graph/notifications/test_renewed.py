"""Likes, follows and reposts that were undone and repeated: they notify once, whatever happened in between."""

from datetime import timedelta
from itertools import permutations

import pytest
from redis.asyncio import Redis

from graph import Graph
from graph.log.events import (
    Event,
    EventBody,
    Followed,
    Liked,
    PostPublished,
    Reposted,
    Unfollowed,
    Unliked,
    Unreposted,
    publication_of,
    publisher_of,
)
from graph.log.notification_groups import Group, NotificationKind, day_of
from graph.model import MAX_NUMBER
from graph.projections.mode import Mode
from tests.graph.notifications.acting import act, take_back
from tests.graph.notifications.reading import all_of, listed, project, summary, view
from tests.support.graph_worlds import Open, append_events, archive_log, befriend, counted, outcomes_of, people, posts

DAY = 86_400_000 << 12
ACTS = ("like", "follow", "repost")


async def renewals(graph: Graph, after: int) -> list[bool]:
    """Return whether each like, follow and repost in the log after a number is renewed."""
    bodies = [event.body async for event in graph.log.replay(after, MAX_NUMBER)]
    return [body.renewed for body in bodies if isinstance(body, Liked | Followed | Reposted)]


@pytest.mark.parametrize("name", ACTS)
async def test_what_is_done_again_notifies_nobody_again(graph: Graph, name: str) -> None:
    """The group keeps its number, stays read, and shows the user again. Another user makes it unread."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    [post] = await posts(graph, alice, "post")
    await act(graph, name, bob, alice, post)
    [before] = await all_of(graph, alice)
    await graph.notifications.mark_read(alice, before.number)
    for _ in range(2):
        await take_back(graph, name, bob, alice, post)
        assert await all_of(graph, alice) == []
        await act(graph, name, bob, alice, post)
        assert await graph.notifications.unread_count(view(graph, alice)) == 0
        [after] = await all_of(graph, alice)
        assert (after.number, after.is_read) == (before.number, True)
        assert (after.actors, after.actors_count) == ((bob,), 1)
    await act(graph, name, carol, alice, post)
    assert await graph.notifications.unread_count(view(graph, alice)) == 1
    assert await summary(graph, alice) == [(name.upper(), (carol, bob), 2)]


@pytest.mark.parametrize("name", ACTS)
async def test_an_unread_notification_stays_unread(graph: Graph, name: str) -> None:
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, alice, "post")
    await act(graph, name, bob, alice, post)
    await take_back(graph, name, bob, alice, post)
    assert await graph.notifications.unread_count(view(graph, alice)) == 0
    await act(graph, name, bob, alice, post)
    assert await graph.notifications.unread_count(view(graph, alice)) == 1


@pytest.mark.parametrize("name", ACTS)
async def test_what_is_done_again_costs_what_the_first_time_costs(graph: Graph, name: str) -> None:
    """The request's usual reads show that it is renewed. Each pair of a user and a post counts separately."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    post, other = await posts(graph, alice, "post", "other")
    start = await graph.log.last()
    async with counted(graph) as first:
        await act(graph, name, bob, alice, post)
    await take_back(graph, name, bob, alice, post)
    async with counted(graph) as again:
        await act(graph, name, bob, alice, post)
    if name == "repost":
        assert again.round_trips - first.round_trips <= 1, "a tombstone of the first repost is checked"
    else:
        assert again.round_trips == first.round_trips
    await act(graph, name, carol, alice, post)
    await act(graph, name, bob, carol, other)
    assert await renewals(graph, start) == [False, True, False, False]


@pytest.mark.parametrize("name", ACTS)
async def test_another_process_knows_that_it_is_renewed(graph: Graph, another: Open, name: str) -> None:
    """This holds even if the process that undid the action died before it projected the reversal."""
    other = await another()
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, alice, "post")
    await act(graph, name, bob, alice, post)
    await graph.worker().drain()
    [first] = await all_of(graph, alice)
    ended: dict[str, EventBody] = {
        "like": Unliked(bob, post, alice),
        "follow": Unfollowed(bob, alice),
        "repost": Unreposted(bob, post, first.number, alice),
    }
    await append_events(graph, [ended[name]])
    await act(other, name, bob, alice, post)
    assert await renewals(graph, first.number) == [True]
    await graph.worker().drain()
    assert [each.number for each in await all_of(graph, alice)] == [first.number]


@pytest.mark.parametrize("name", ACTS)
async def test_concurrent_requests_notify_once(graph: Graph, another: Open, name: str) -> None:
    """Two tabs of one user, in two processes, repeat an action that was undone."""
    other = await another()
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, alice, "post")
    await act(graph, name, bob, alice, post)
    [first] = await all_of(graph, alice)
    for _ in range(3):
        await take_back(graph, name, bob, alice, post)
        outcomes = await outcomes_of(*(act(g, name, bob, alice, post) for g in (graph, other)))
        assert outcomes == [None, None]
    assert all(await renewals(graph, first.number))
    assert [each.number for each in await all_of(graph, alice)] == [first.number]


async def test_an_uncertain_like_of_a_liked_post_is_renewed(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """If there are too many unprojected events, a repeated like is appended. It moves no notification."""
    monkeypatch.setattr("graph.log.log.READ_CHUNK", 1)
    monkeypatch.setattr("graph.log.log.MOST_UNPROJECTED", 1)
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, alice, "post")
    await graph.likes.like(bob, post)
    [first] = await all_of(graph, alice)
    await graph.likes.like(bob, post)
    assert await renewals(graph, first.number) == [True]
    assert [each.number for each in await all_of(graph, alice)] == [first.number]


async def test_an_archived_like_is_renewed(another: Open) -> None:
    """The store holds neither the like nor its end, but the request asks the archive."""
    graph = await another(hot_posts=1, hot_slack=1, hot_newest=1)
    alice, bob = await people(graph, "alice", "bob")
    published = await posts(graph, alice, *map(str, range(5)))
    for post in published:
        await graph.likes.like(bob, post)
    await graph.worker().drain()
    await archive_log(graph)
    await graph.scan.run_pass()
    assert await graph.likes.liked_among(bob, published[:1]) == [True]
    last = await graph.log.last()
    await append_events(graph, [Unliked(bob, published[0], alice)])
    await graph.likes.like(bob, published[0])
    assert await renewals(graph, last) == [True]


async def test_a_follow_after_a_block_is_renewed(graph: Graph) -> None:
    """The block ended the follow. Blocking and unblocking must not notify again."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, bob, alice)
    [first] = await all_of(graph, alice)
    await graph.blocks.block(bob, alice)
    await graph.blocks.unblock(bob, alice)
    await graph.follows.follow(bob, [alice])
    assert await renewals(graph, first.number) == [True]
    assert [each.number for each in await all_of(graph, alice)] == [first.number]


async def test_follows_of_one_request_are_renewed_one_by_one(graph: Graph) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob)
    await graph.follows.unfollow(alice, [bob])
    last = await graph.log.last()
    await graph.follows.follow(alice, [bob, carol])
    assert await renewals(graph, last) == [True, False]


async def test_a_renewed_follow_on_another_day_makes_no_group(graph: Graph, raw: Redis) -> None:
    """The follow leaves the group of the first day. If others follow on the new day, the user is in their group."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await project(graph, (DAY, Followed(bob, alice)), (DAY + 1, Unfollowed(bob, alice)))
    await project(graph, (2 * DAY, Followed(bob, alice, renewed=True)))
    assert await listed(raw, alice) == {f"follow:{day_of(DAY)}": DAY}
    assert await summary(graph, alice) == []
    await project(graph, (2 * DAY + 1, Followed(carol, alice)))
    assert await summary(graph, alice) == [("FOLLOW", (carol, bob), 2)]


async def test_it_may_notify_again_when_the_tombstone_is_dropped(another: Open) -> None:
    """Nothing in the store then shows that there was an earlier action."""
    graph = await another(tombstones_live=timedelta(0))
    alice, bob = await people(graph, "alice", "bob")
    post, other = await posts(graph, alice, "post", "other")
    await graph.likes.like(bob, post)
    await graph.likes.unlike(bob, post)
    await graph.worker().drain()
    await archive_log(graph)
    await graph.log.watermark()
    await graph.likes.like(bob, other)
    await graph.likes.unlike(bob, other)
    last = await graph.log.last()
    await graph.likes.like(bob, post)
    assert await renewals(graph, last) == [False]


async def test_the_order_of_events_does_not_matter(graph: Graph, raw: Redis) -> None:
    """A process may project a renewed like before the first one, and between the likes of others."""
    bodies: list[tuple[int, EventBody]] = [
        (10, Liked(2, 5, 1)),
        (11, Unliked(2, 5, 1)),
        (12, Liked(2, 5, 1, renewed=True)),
        (13, Reposted(2, 5, 1)),
        (14, Reposted(2, 5, 1, renewed=True)),
    ]
    for order in permutations(bodies):
        await raw.flushdb()
        for number, body in order:
            await graph.projections.project([Event(number, body)], Mode.REQUEST)
        assert await listed(raw, 1) == {"like:5": 10, "repost:5": 13}


async def test_a_renewed_repost_is_shown_among_newer_quotes(graph: Graph) -> None:
    """The repost's number is above the number of the group. Quotes have a list of their own, and do not matter."""
    alice, bob, carol, dave = await people(graph, "alice", "bob", "carol", "dave")
    [post] = await posts(graph, alice, "post")
    await act(graph, "repost", carol, alice, post)
    await act(graph, "repost", bob, alice, post)
    number = (await all_of(graph, alice))[0].number
    for n in range(3):
        await graph.posts.publish(dave, f"quote {n}", quote_of=post)
    for user in (bob, carol):
        await take_back(graph, "repost", user, alice, post)
        await act(graph, "repost", user, alice, post)
    for n in range(3):
        await graph.posts.publish(dave, f"late quote {n}", quote_of=post)
    [shown] = await graph.notifications.get_many(view(graph, alice), [Group(NotificationKind.REPOST, post)])
    assert shown is not None
    assert (shown.number, shown.actors, shown.actors_count) == (number, (carol, bob), 2)
    assert await graph.notifications.unread_count(view(graph, alice)) == 1 + 6


@pytest.mark.parametrize("renewed", [False, True])
def test_the_record_of_a_plain_repost_tells_whether_it_is_renewed(renewed: bool) -> None:
    """If the log has lost the event, the archive gets it from the record."""
    body = Reposted(1, 2, 3, renewed)
    published = publication_of(body)
    assert isinstance(published, PostPublished)
    assert publisher_of(published) == body
