"""Views: which users are hidden or silenced, the effects of that, and the cost."""

from collections.abc import Awaitable, Callable

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.errors import ProblemCode, Rejected
from graph.model import Relationship
from graph.pages.full_pages import MOST_SCANNED
from graph.paging import Window
from graph.visibility.views import FEW, SYSTEM, View, refuse_blocked
from tests.support.graph_worlds import counted, crowd, newest, people, posts

Mark = Callable[[str, int, int], Awaitable[None]]


@pytest.fixture
def mark(raw: Redis) -> Mark:
    """Return a function that puts a user into one of the sets of a viewer."""

    async def add(key: str, viewer: int, user: int) -> None:
        await raw.zadd(getattr(keys, key)(viewer), {str(user): 1})

    return add


async def many(raw: Redis, viewer: int) -> None:
    """Let a viewer block more users than are read at once."""
    await raw.zadd(keys.blocking(viewer), {str(user): 1 for user in range(1, FEW + 2)})


@pytest.mark.parametrize("size", ["few", "many"])
async def test_blocks_in_both_directions_hide_and_mutes_silence(
    graph: Graph, raw: Redis, mark: Mark, size: str
) -> None:
    alice, bob, carol, dave, erin = await people(graph, "alice", "bob", "carol", "dave", "erin")
    await mark("blocking", alice, bob)
    await mark("blockers", alice, carol)
    await mark("muting", alice, dave)
    if size == "many":
        await many(raw, alice)

    view = graph.visibility.of(alice)

    assert await view.hidden([bob, carol, dave, erin]) == {bob, carol}
    assert await view.silenced([bob, carol, dave, erin, alice]) == {bob, carol, dave}
    for other in (graph.visibility.of(erin), graph.visibility.of(None), SYSTEM):
        assert not await other.silenced([alice, bob, carol, dave])


async def test_a_view_shares_its_round_trip_and_is_read_once(graph: Graph, raw: Redis, mark: Mark) -> None:
    """With many blocks, users are looked up: those given to `begin` at once, others in another round trip."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await mark("blocking", alice, bob)
    few = graph.visibility.of(alice)
    async with counted(graph) as counts:
        few.begin()
        await graph.store.read([("EXISTS", keys.user(bob))])
        assert await few.hidden([bob, carol]) == {bob}
        assert await few.hidden([carol, 7]) == frozenset()
    assert counts.round_trips == 1
    await many(raw, alice)
    large = graph.visibility.of(alice)
    async with counted(graph) as counts:
        large.begin([bob])
        await graph.store.read([("EXISTS", keys.user(bob))])
        assert await large.hidden([bob]) == {bob}
    assert counts.round_trips == 1
    async with counted(graph) as counts:
        assert await large.hidden([bob, carol, 7]) == {bob, 7}
        assert await large.hidden([carol]) == frozenset()
    assert counts.round_trips == 1


async def views_of_a_block(graph: Graph, mark: Mark, blocker: int, blocked: int) -> list[View]:
    await mark("blocking", blocker, blocked)
    await mark("blockers", blocked, blocker)
    return [graph.visibility.of(blocker), graph.visibility.of(blocked)]


async def test_posts_and_timelines_are_hidden_across_a_block(graph: Graph, mark: Mark) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    [by_alice] = await posts(graph, alice, "one")
    [by_bob] = await posts(graph, bob, "two")
    [by_carol] = await posts(graph, carol, "three")
    for view, own, foreign, user in zip(
        await views_of_a_block(graph, mark, alice, bob),
        (by_alice, by_bob),
        (by_bob, by_alice),
        (bob, alice),
        strict=True,
    ):
        found = await graph.posts.get_many(view, [own, foreign, by_carol])
        assert [post and post.id for post in found] == [own, None, by_carol]
        [hidden, shown] = await graph.timelines.user(view, [user, carol], newest(2))
        assert (hidden.items, hidden.has_next) == ((), False)
        assert [post.id for post in shown.items] == [by_carol]


async def test_a_hidden_timeline_is_not_read_to_its_end(graph: Graph, mark: Mark) -> None:
    alice, bob = await people(graph, "alice", "bob")
    await posts(graph, bob, *map(str, range(9)))
    [view, _] = await views_of_a_block(graph, mark, alice, bob)
    async with counted(graph) as counts:
        await graph.timelines.user(view, [bob], newest(1))
    assert counts.round_trips == 2


async def test_lists_leave_out_hidden_users_and_pages_are_refilled(graph: Graph, mark: Mark) -> None:
    """The list of a hidden user is empty. A muted user is in every list."""
    alice, hub, *fans = [*await people(graph, "alice", "hub"), *await crowd(graph, 9)]
    for fan in fans:
        await graph.follows.follow(fan, [hub])
        await graph.follows.follow(hub, [fan])
    for fan in fans[2:7]:
        await mark("blocking", alice, fan)
    await mark("muting", alice, fans[0])
    view = graph.visibility.of(alice)

    for read in (graph.follows.followers, graph.follows.following):
        [page] = await read(view, [hub], newest(3))
        assert [follow.user for follow in page.items] == [fans[8], fans[7], fans[1]]
        assert (page.has_next, page.reached) == (True, None)
        [back] = await read(view, [hub], Window(9, forward=False))
        assert [follow.user for follow in back.items] == [fans[8], fans[7], fans[1], fans[0]]
        [whole] = await read(graph.visibility.of(fans[0]), [hub], newest(100))
        assert [follow.user for follow in whole.items] == fans[::-1]
    await mark("blockers", alice, hub)
    [page] = await graph.follows.followers(graph.visibility.of(alice), [hub], newest(3))
    assert (page.items, page.has_next) == ((), False)


async def test_a_page_of_hidden_users_is_cut_short(graph: Graph, raw: Redis) -> None:
    """The page ends where it stopped looking, and the next page continues there."""
    alice, hub = await people(graph, "alice", "hub")
    size = MOST_SCANNED + 1200
    await raw.zadd(keys.followers(hub), {str(user): user for user in range(1, size + 1)})
    await raw.zadd(keys.blocking(alice), {str(user): 1 for user in range(9, size + 1)})
    view = graph.visibility.of(alice)
    async with counted(graph) as counts:
        [page] = await graph.follows.followers(view, [hub], newest(3))
    assert (page.items, page.has_next) == ((), True)
    assert page.reached is not None
    assert page.reached <= size - MOST_SCANNED
    assert counts.round_trips <= 10
    [rest] = await graph.follows.followers(view, [hub], newest(3, after=page.reached))
    assert [follow.user for follow in rest.items] == [8, 7, 6]


async def test_relationships_show_mutes_and_blocks(graph: Graph, raw: Redis, mark: Mark) -> None:
    alice, bob, carol, dave = await people(graph, "alice", "bob", "carol", "dave")
    await mark("blocking", alice, bob)
    await mark("blockers", alice, carol)
    await mark("muting", alice, dave)
    expected = [
        Relationship(alice, bob, blocking=True),
        Relationship(alice, carol, blocked_by=True),
        Relationship(alice, dave, muting=True),
    ]
    assert await graph.relationships.between(alice, [bob, carol, dave]) == expected
    await many(raw, alice)
    assert await graph.relationships.between(alice, [bob, carol, dave]) == expected


async def test_actions_across_a_block_are_refused(graph: Graph, mark: Mark) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    for view, user in zip(await views_of_a_block(graph, mark, alice, bob), (bob, alice), strict=True):
        with pytest.raises(Rejected) as refusal:
            await refuse_blocked(view, user, "replyToId")
        [problem] = refusal.value.problems
        assert (problem.code, problem.field) == (ProblemCode.BLOCKED, ("replyToId",))
        await refuse_blocked(view, carol, "replyToId")
