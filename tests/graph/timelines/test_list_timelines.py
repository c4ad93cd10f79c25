"""The timelines of lists: their posts, in pages, from the store and the archive."""

import random

import pytest

from graph import Graph
from graph.log.events import PostPublished, Reposted
from graph.model import Page, Post
from graph.paging import Window
from graph.posts.publication import as_reply
from graph.records import published_post
from graph.timelines.list_timelines import MOST_SCANNED
from tests.support.graph_worlds import Open, archive_log, counted, home, ids, many_posts, newest, oldest, people, posts


async def timeline(graph: Graph, owner: int, list_id: int, size: int = 100, *, forward: bool = True) -> list[int]:
    """Return the whole timeline of a list, newest first, read page by page from either end."""
    found: list[int] = []
    window = newest(size) if forward else oldest(size)
    while True:
        page = await page_of(graph, owner, list_id, window)
        found = found + ids(page.items) if forward else ids(page.items) + found
        if not (page.has_next if forward else page.has_previous):
            return found
        assert len(page.items) == size, "a page is short only at the end"
        window = newest(size, after=found[-1]) if forward else oldest(size, before=found[0])


async def page_of(graph: Graph, owner: int, list_id: int, window: Window) -> Page[Post]:
    """Return a page of the timeline of a list."""
    return await graph.list_timelines.page(graph.visibility.of(owner), owner, list_id, window)


async def test_a_timeline_holds_the_listed_posts_and_reposts_of_the_members_now(graph: Graph) -> None:
    """Posts of followed users are not included. A change of members counts at once. Deleted posts are left out."""
    alice, bob, carol, dave = await people(graph, "alice", "bob", "carol", "dave")
    friends = await graph.lists.create(alice, "friends", [bob, carol])
    await graph.follows.follow(alice, [dave])
    [one] = await posts(graph, bob, "one")
    [two, gone] = await posts(graph, carol, "two", "gone")
    [other] = await posts(graph, dave, "other")
    repost = await graph.reposts.repost(graph.visibility.of(bob), bob, other)
    quote = await graph.posts.publish(carol, "look", quote_of=other)
    await graph.posts.publish(bob, "not listed", reply_to=other)
    await graph.posts.delete(carol, gone)

    assert await timeline(graph, alice, friends.id) == [quote.id, repost.id, two, one]
    page = await page_of(graph, alice, friends.id, newest(9))
    assert page.related[other].text == "other"
    await graph.lists.update(alice, friends.id, added=[dave], removed=[carol])
    assert await timeline(graph, alice, friends.id) == [repost.id, other, one]
    assert await timeline(graph, bob, friends.id) == []
    await graph.posts.delete(dave, other)
    assert await timeline(graph, alice, friends.id) == [one]
    await graph.lists.delete(alice, friends.id)
    assert await timeline(graph, alice, friends.id) == []


async def test_muted_and_hidden_users_are_left_out_with_reposts_of_them(graph: Graph) -> None:
    """Quotes stay. The end of the mute or block shows all posts again."""
    alice, bob, carol, dave = await people(graph, "alice", "bob", "carol", "dave")
    friends = await graph.lists.create(alice, "friends", [bob, carol])
    [one] = await posts(graph, bob, "one")
    [other] = await posts(graph, dave, "other")
    reposts = [(await graph.reposts.repost(graph.visibility.of(carol), carol, post)).id for post in (one, other)]
    quote = (await graph.posts.publish(carol, "look", quote_of=one)).id
    everything = [quote, reposts[1], reposts[0], one]
    assert await timeline(graph, alice, friends.id) == everything

    await graph.blocks.mute(alice, bob)
    assert await timeline(graph, alice, friends.id) == [quote, reposts[1]]
    await graph.blocks.unmute(alice, bob)
    assert await timeline(graph, alice, friends.id) == everything
    for blocker, blocked in ((alice, bob), (bob, alice)):
        await graph.blocks.block(blocker, blocked)
        assert await timeline(graph, alice, friends.id) == [quote, reposts[1]]
        await graph.blocks.unblock(blocker, blocked)
    await graph.blocks.mute(alice, dave)
    assert await timeline(graph, alice, friends.id) == [quote, reposts[0], one]


@pytest.mark.parametrize("seed", range(3))
async def test_pages_of_any_size_join_and_reach_archived_posts(another: Open, seed: int) -> None:
    """Pages join in both directions, with deleted posts among them."""
    graph = await another(hot_posts=4)
    rng = random.Random(seed)  # noqa: S311 - reproducible
    alice, *others = await people(graph, "alice", "bob", "carol", "dave")
    friends = await graph.lists.create(alice, "friends", others)
    published = [(await posts(graph, rng.choice(others), f"post {n}"))[0] for n in range(30)]
    await graph.worker().drain()
    await archive_log(graph)
    for post in rng.sample(published, 6):
        [found] = await graph.posts.get_many(graph.visibility.of(alice), [post])
        assert found is not None
        await graph.posts.delete(found.author, post)
        published.remove(post)
    for size in (1, 4, 100):
        for forward in (True, False):
            assert await timeline(graph, alice, friends.id, size, forward=forward) == published[::-1]


async def test_a_list_and_a_home_of_the_same_users_are_equal(graph: Graph) -> None:
    alice, *others = await people(graph, "alice", "bob", "carol", "dave")
    friends = await graph.lists.create(alice, "friends", [alice, *others])
    await graph.follows.follow(alice, others)
    for user in (alice, *others):
        [first] = await posts(graph, user, "first")
        body = as_reply(PostPublished(user, "reply"), published_post(first, PostPublished(user, "first")))
        await graph.commit([body, Reposted(others[0], first, user)])
    assert await timeline(graph, alice, friends.id, 3) == await home(graph, alice) != []


async def test_a_page_looks_at_a_bounded_number_of_posts(graph: Graph) -> None:
    """A member who only reposts a muted user makes a page short, and the next page continues from its end."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    friends = await graph.lists.create(alice, "friends", [bob])
    [old] = await posts(graph, bob, "old")
    originals = await many_posts(graph, carol, MOST_SCANNED + 600)
    await graph.commit([Reposted(bob, post, carol) for post in originals])
    await graph.worker().drain()
    await graph.blocks.mute(alice, carol)

    page = await page_of(graph, alice, friends.id, newest(10))
    assert (page.items, page.has_next) == ((), True)
    assert page.reached is not None
    page = await page_of(graph, alice, friends.id, newest(10, after=page.reached))
    assert (ids(page.items), page.has_next) == ([old], False)


async def test_a_page_takes_three_round_trips(graph: Graph) -> None:
    """A page reads members with the viewer's blocks and mutes; timelines; and posts. An empty list takes one."""
    alice, *others = await people(graph, "alice", "bob", "carol", "dave")
    friends = await graph.lists.create(alice, "friends", others)
    empty = await graph.lists.create(alice, "empty")
    await graph.blocks.mute(alice, others[0])
    for user in others:
        await posts(graph, user, "one", "two")
    async with counted(graph) as cost:
        page = await page_of(graph, alice, friends.id, newest(3))
    assert (len(page.items), cost.round_trips) == (3, 3)
    async with counted(graph) as cost:
        page = await page_of(graph, alice, empty.id, newest(3))
    assert (len(page.items), cost.round_trips) == (0, 1)


async def test_a_page_that_is_just_full_knows_whether_there_is_more(graph: Graph) -> None:
    """This holds even if the page is full only because it read past hidden posts."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    friends = await graph.lists.create(alice, "friends", [bob])
    [original] = await posts(graph, carol, "original")
    published = await posts(graph, bob, "one", "two", "three")
    await graph.reposts.repost(graph.visibility.of(bob), bob, original)
    await graph.blocks.mute(alice, carol)

    page = await page_of(graph, alice, friends.id, newest(2))

    assert (ids(page.items), page.has_next) == (published[:0:-1], True)
