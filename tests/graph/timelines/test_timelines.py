"""Pages of timelines: content, ends, stability and cost."""

import pytest
from redis.asyncio import Redis

from graph import Graph
from graph.errors import BadPaging
from graph.paging import CursorKind, Window, encode_cursor
from graph.visibility.views import SYSTEM
from tests.support.graph_worlds import (
    Open,
    befriend,
    cached,
    counted,
    crowd,
    cursor,
    home,
    home_upwards,
    ids,
    many_posts,
    newest,
    oldest,
    people,
    posts,
)


async def user_timeline(graph: Graph, author: int, size: int) -> list[int]:
    """Return a whole user timeline, read page by page."""
    found: list[int] = []
    page = (await graph.timelines.user(SYSTEM, [author], newest(size)))[0]
    found += ids(page.items)
    while page.has_next:
        assert len(page.items) == size
        page = (await graph.timelines.user(SYSTEM, [author], newest(size, after=found[-1])))[0]
        found += ids(page.items)
    return found


async def test_home_shows_own_posts_and_those_of_followed_users(graph: Graph) -> None:
    """The posts are newest first, without posts of strangers and followers."""
    alice, bob, carol, dave = await people(graph, "alice", "bob", "carol", "dave")
    await befriend(graph, alice, bob, carol)
    await befriend(graph, dave, alice)
    one = await posts(graph, bob, "b1")
    two = await posts(graph, alice, "a1")
    three = await posts(graph, carol, "c1")
    await posts(graph, dave, "d1")
    four = await posts(graph, bob, "b2")

    for _ in range(2):  # merged, then cached
        assert await home(graph, alice) == four + three + two + one
        await graph.timelines.wait_for_rebuilds()


async def test_a_home_timeline_without_posts_is_empty(graph: Graph) -> None:
    """The home timeline of an unknown user is empty too."""
    [alice] = await people(graph, "alice")

    for viewer in (alice, 7):
        for window in (newest(5), oldest(5), newest(5, after=9), oldest(5, before=9)):
            page = await graph.timelines.home(viewer, window)
            assert page.items == ()
            await graph.timelines.wait_for_rebuilds()


async def test_a_follow_or_unfollow_changes_the_home_timeline_immediately(graph: Graph, another: Open) -> None:
    """It changes with and without a cache, in every process."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    other = await another()
    mine, theirs = await posts(graph, carol, "c"), await posts(graph, bob, "b1", "b2")
    await befriend(graph, alice, carol)
    await cached(graph, alice)

    await befriend(graph, alice, bob)
    assert await home(other, alice) == [*reversed(theirs), *mine]
    await cached(other, alice)
    assert await home(other, alice) == [*reversed(theirs), *mine]

    await graph.follows.unfollow(alice, [bob])
    assert await home(other, alice) == mine


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("home_size", [1, 4, 800])
async def test_pages_concatenate_to_the_whole_timeline(another: Open, size: int, home_size: int) -> None:
    """Pages concatenate in both directions: from the cache, across its floor, and below the floor."""
    graph = await another(home_size=home_size)
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob, carol)
    everything = [(await posts(graph, (alice, bob, carol)[n % 3], f"post {n}"))[0] for n in range(9)][::-1]

    for _ in range(2):
        assert await home(graph, alice, size) == everything
        assert await home_upwards(graph, alice, size) == everything
        await cached(graph, alice)


async def test_a_page_between_two_cursors_stays_within_both(graph: Graph) -> None:
    """The page reports at which ends the timeline continues."""
    [alice] = await people(graph, "alice")
    one, two, three, four, five = await posts(graph, alice, *"12345")

    for _ in range(2):
        pages = [
            await graph.timelines.home(alice, window)
            for window in (
                newest(2, after=five, before=one),
                newest(3, after=five, before=one),
                oldest(2, after=five, before=one),
                oldest(3, after=five, before=one),
            )
        ]
        assert [ids(page.items) for page in pages] == [
            [four, three],
            [four, three, two],
            [three, two],
            [four, three, two],
        ]
        assert [page.has_next for page in pages] == [True, False, True, True]
        assert [page.has_previous for page in pages] == [True, True, True, False]
        await cached(graph, alice)


async def test_new_posts_do_not_shift_pages(graph: Graph) -> None:
    """Posts published after the first page was read are on no later page, and can be requested separately."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    old = (await posts(graph, bob, *"123456"))[::-1]
    first = await graph.timelines.home(alice, newest(3))

    new = await posts(graph, bob, "7", "8")

    rest = await graph.timelines.home(alice, newest(3, after=first.items[-1].id))
    assert ids(first.items) + ids(rest.items) == old
    assert not rest.has_next
    since = await graph.timelines.home(alice, oldest(10, before=first.items[0].id))
    assert ids(since.items) == new[::-1]
    assert (since.has_previous, since.has_next) == (False, True)


@pytest.mark.parametrize("deleted", [[5], [5, 4, 3], [9, 8, 7, 6], [0], [5, 0], list(range(10)), [1, 3, 5, 7, 9]])
async def test_pages_are_refilled_after_deletions(graph: Graph, raw: Redis, deleted: list[int]) -> None:
    """A page is short only at the end of the timeline. A read removes deleted posts from the cache."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    written = await posts(graph, bob, *"0123456789")
    await cached(graph, alice)
    for n in deleted:
        await graph.posts.delete(bob, written[n])
    left = [post for n, post in enumerate(written) if n not in deleted][::-1]

    for size in (1, 2, 3, 100):
        assert await home(graph, alice, size) == left
        assert await home_upwards(graph, alice, size) == left
        assert await user_timeline(graph, bob, size) == left
    members = await raw.zrange(f"home:{{{alice}}}", 0, -1)
    assert sorted(members) == sorted(["f", *map(str, left)])


async def test_a_page_is_not_empty_because_many_posts_were_deleted(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    kept = await posts(graph, bob, "kept")
    for post in await many_posts(graph, bob, 30):
        await graph.posts.delete(bob, post)

    page = await graph.timelines.home(alice, newest(2))

    assert (ids(page.items), page.has_next) == (kept, False)


async def test_home_costs_two_round_trips_with_a_cache(graph: Graph) -> None:
    """One reads the ids with the view, the other the posts, for any page size and number of followed users.

    The view takes 2 commands: the viewer's blocks and mutes, and the suspensions.
    """
    alice, *others = await crowd(graph, 101)
    await graph.follows.follow(alice, others)
    for author in others[:10]:
        await many_posts(graph, author, 12)
    await cached(graph, alice)

    for window in (newest(1), newest(30), newest(100), newest(30, after=await graph.log.last())):
        async with counted(graph) as cost:
            page = await graph.timelines.home(alice, window)
        assert len(page.items) == window.count
        assert (cost.round_trips, cost.commands) == (2, 3 + window.count + 1)


async def test_home_costs_three_round_trips_without_a_cache(graph: Graph) -> None:
    """The third one is for the merge. The cache is rebuilt in the background."""
    alice, *others = await crowd(graph, 51)
    await graph.follows.follow(alice, others)
    for author in others[:10]:
        await many_posts(graph, author, 12)

    async with counted(graph) as cost:
        page = await graph.timelines.home(alice, newest(30))

    assert len(page.items) == 30
    assert cost.round_trips <= 4  # a rebuild may have begun
    await graph.timelines.wait_for_rebuilds()


async def test_deleted_posts_are_removed_from_the_cache_once(graph: Graph) -> None:
    """The next read costs two round trips again."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    written = await many_posts(graph, bob, 40)
    await cached(graph, alice)
    await graph.posts.delete(bob, written[-3])

    costs = []
    for _ in range(2):
        async with counted(graph) as cost:
            await graph.timelines.home(alice, newest(10))
        costs.append(cost.round_trips)

    assert costs[0] > 2
    assert costs[1] == 2


async def test_user_timelines_cost_two_round_trips_for_all_authors(graph: Graph) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    by_alice, by_bob = await posts(graph, alice, *"1234"), await posts(graph, bob, *"12")

    async with counted(graph) as cost:
        pages = await graph.timelines.user(SYSTEM, [bob, alice, carol, 7, bob], newest(2))

    assert [ids(page.items) for page in pages] == [by_bob[::-1], by_alice[:1:-1], [], [], by_bob[::-1]]
    assert [page.has_next for page in pages] == [False, True, False, False, False]
    assert cost.round_trips == 2


async def test_user_timelines_are_paged_in_both_directions(graph: Graph) -> None:
    [alice] = await people(graph, "alice")
    one, two, three, four = await posts(graph, alice, *"1234")

    [older] = await graph.timelines.user(SYSTEM, [alice], newest(2, after=four))
    [newer] = await graph.timelines.user(SYSTEM, [alice], oldest(2, before=one))

    assert (ids(older.items), older.has_next, older.has_previous) == ([three, two], True, True)
    assert (ids(newer.items), newer.has_next, newer.has_previous) == ([three, two], True, True)


async def test_the_cursor_of_a_deleted_post_still_works(graph: Graph) -> None:
    """A cursor may be that of a deleted post, or of a post in another timeline."""
    alice, bob = await people(graph, "alice", "bob")
    one, two, three = await posts(graph, alice, *"123")
    [foreign] = await posts(graph, bob, "b")
    await graph.posts.delete(alice, two)

    assert ids((await graph.timelines.home(alice, newest(5, after=two))).items) == [one]
    assert ids((await graph.timelines.home(alice, oldest(5, before=two))).items) == [three]
    assert ids((await graph.timelines.home(alice, newest(5, after=foreign))).items) == [three, one]


@pytest.mark.parametrize("kind", [CursorKind.FOLLOW, CursorKind.LOG])
def test_timelines_reject_cursors_of_other_kinds(kind: CursorKind) -> None:
    with pytest.raises(BadPaging, match="requires a post cursor"):
        Window.of(CursorKind.POST, first=1, after=encode_cursor(kind, 1))
    assert cursor(1) == encode_cursor(CursorKind.POST, 1)
