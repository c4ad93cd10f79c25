"""Plain reposts of muted users, and across a block: home timelines and their live streams leave them out."""

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.feed.feed import Feed
from graph.feed.filters import EventFilter
from graph.feed.updates import AuthorAdded, AuthorHidden
from graph.log.events import Blocked, EventBody, Unblocked
from graph.log.pair_events import Muted
from graph.visibility.views import FEW
from tests.graph.feed.watching import feed_of, following, numbers, watching
from tests.support.graph_worlds import (
    Open,
    append_events,
    archive_log,
    befriend,
    cached,
    counted,
    home,
    home_upwards,
    newest,
    own,
    people,
    posts,
)

SILENCING = ("mute", "block", "be blocked")


async def silence(graph: Graph, how: str, viewer: int, user: int, *, end: bool = False) -> None:
    """Let a viewer mute, unmute, block or unblock a user, or be blocked or unblocked."""
    if how == "mute":
        await (graph.blocks.unmute if end else graph.blocks.mute)(viewer, user)
    else:
        pair = (viewer, user) if how == "block" else (user, viewer)
        await (graph.blocks.unblock if end else graph.blocks.block)(*pair)


async def repost(graph: Graph, user: int, post: int) -> int:
    """Repost a post, and return the id of the plain repost."""
    return (await graph.reposts.repost(graph.visibility.of(user), user, post)).id


async def quote(graph: Graph, user: int, post: int) -> int:
    """Quote a post, and return the id of the quote."""
    return (await graph.posts.publish(user, "look", quote_of=post)).id


@pytest.mark.parametrize("how", SILENCING)
async def test_home_leaves_out_reposts_of_silenced_users(graph: Graph, how: str) -> None:
    """Quotes stay. Pages are full in both directions, without a cache and with one that fan-out has filled."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, carol)
    originals = await posts(graph, bob, *map(str, range(6)))
    [other] = await posts(graph, carol, "other")
    shown = [await quote(graph, carol, originals[0]), other]
    everything = [*[await repost(graph, carol, post) for post in originals], *shown]
    assert await home(graph, alice, 2) == sorted(everything, reverse=True)

    await silence(graph, how, alice, bob)

    for original in originals[:2]:
        for size in (1, 3, 100):
            assert await home(graph, alice, size) == sorted(shown, reverse=True)
            assert await home_upwards(graph, alice, size) == sorted(shown, reverse=True)
        await cached(graph, alice)
        await graph.reposts.unrepost(graph.visibility.of(carol), carol, original)
        everything = [*everything[1:], await repost(graph, carol, original)]
        shown += await posts(graph, carol, "newer")
        everything += shown[-1:]
    assert await own(graph, carol) == sorted(everything, reverse=True)
    await silence(graph, how, alice, bob, end=True)
    assert await home(graph, alice, 2) == sorted(everything, reverse=True)


async def test_home_leaves_out_own_reposts_of_silenced_users(graph: Graph) -> None:
    """The viewer's own timeline still shows them."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    reposted = await repost(graph, alice, post)
    await graph.blocks.mute(alice, bob)
    assert (await home(graph, alice), await own(graph, alice)) == ([], [reposted])


async def test_archived_reposts_of_silenced_users_are_left_out(another: Open) -> None:
    graph = await another(hot_posts=1, hot_slack=1, hot_newest=1)
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, carol)
    originals = await posts(graph, bob, *map(str, range(5)))
    reposts = [await repost(graph, carol, post) for post in originals]
    [last] = await posts(graph, carol, "last")
    await archive_log(graph)
    await graph.scan.run_pass()
    assert await home(graph, alice, 2) == [last, *reposts[::-1]]
    await graph.blocks.mute(alice, bob)
    assert await home(graph, alice, 2) == [last]


@pytest.mark.parametrize("size", ["few", "many"])
async def test_a_page_without_silenced_reposts_costs_no_more(graph: Graph, raw: Redis, size: str) -> None:
    """It takes 3 round trips: cache, posts with the viewer's mutes, and originals. With many blocks, it takes 2 more.

    These look up the authors of the posts and of the originals.
    """
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, carol)
    if size == "many":
        await raw.zadd(keys.blocking(alice), {str(user): 1 for user in range(1, FEW + 2)})
    [post] = await posts(graph, bob, "hi")
    reposted = await repost(graph, carol, post)
    await cached(graph, alice)
    async with counted(graph) as cost:
        page = await graph.timelines.home(alice, newest(5))
    assert [found.id for found in page.items] == [reposted]
    assert cost.round_trips == (3 if size == "few" else 5)


@pytest.mark.parametrize("how", SILENCING)
async def test_live_homes_leave_out_reposts_of_silenced_users(graph: Graph, feed: Feed, how: str) -> None:
    """This holds for streams that are live when the viewer silences the user, for new ones, and for replays."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, carol)
    first, second = await posts(graph, bob, "first", "second")
    start = await graph.log.last()
    async with watching(feed, alice) as live:
        shown = await repost(graph, carol, first)
        assert numbers(await live.take(1)) == [shown]
        await silence(graph, how, alice, bob)
        [hidden] = await live.take(1)
        assert isinstance(hidden, AuthorHidden)
        left_out = await repost(graph, carol, second)
        [own_post] = await posts(graph, carol, "own")
        quoted = await quote(graph, carol, first)
        assert numbers(await live.take(2)) == [own_post, quoted]
        async with watching(feed, alice, after=start) as replay:
            assert numbers(await replay.until(quoted)) == [hidden.number, own_post, quoted]
        await silence(graph, how, alice, bob, end=True)
        assert isinstance((await live.take(1))[0], AuthorAdded)
        again = await repost(graph, carol, (await posts(graph, bob, "third"))[0])
        assert numbers(await live.take(1)) == [again]
    assert left_out in await home(graph, alice)


@pytest.mark.parametrize("body", [Muted, Blocked, Unblocked])
async def test_a_join_applies_unprojected_mutes_and_blocks(
    graph: Graph, another: Open, body: type[Muted | Blocked | Unblocked]
) -> None:
    """No worker has projected the events between the watermark and the head of the log."""
    reading = await another()
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, carol)
    if body is Unblocked:
        await graph.blocks.block(bob, alice)
    [post] = await posts(graph, bob, "hi")
    await graph.worker().drain()
    start = await graph.log.last()
    unprojected: list[EventBody] = [Muted(alice, bob) if body is Muted else body(bob, alice)]
    [change] = await append_events(graph, unprojected)
    reposted = await repost(graph, carol, post)
    [last] = await posts(graph, carol, "last")
    async with feed_of(reading) as feed, watching(feed, alice, after=start) as replay:
        expected = [change.number, reposted, last] if body is Unblocked else [change.number, last]
        assert numbers(await replay.until(last)) == expected
        live = await repost(graph, carol, (await posts(graph, bob, "new"))[0])
        [end] = await posts(graph, carol, "end")
        assert numbers(await replay.until(end)) == ([live, end] if body is Unblocked else [end])


async def test_a_viewer_with_many_blocks_sees_no_reposts_of_silenced_users(
    graph: Graph, raw: Redis, feed: Feed
) -> None:
    alice, bob, carol, dave = await people(graph, "alice", "bob", "carol", "dave")
    await befriend(graph, alice, carol)
    await raw.zadd(keys.blocking(alice), {str(user): 1 for user in range(1, FEW + 2)})
    await raw.zadd(keys.muting(alice), {str(bob): 1})  # without an event that a stream would apply
    await raw.zadd(keys.blockers(alice), {str(dave): 1})
    async with watching(feed, alice) as live:
        for user in (bob, dave):
            await repost(graph, carol, (await posts(graph, user, "hi"))[0])
        [end] = await posts(graph, carol, "end")
        assert numbers(await live.take(1)) == [end]


async def test_event_streams_leave_out_reposts_across_a_block_only(graph: Graph, feed: Feed) -> None:
    """A mute does not filter them."""
    alice, bob, carol, dave = await people(graph, "alice", "bob", "carol", "dave")
    await graph.blocks.block(bob, alice)
    await graph.blocks.mute(alice, dave)
    by_bob, by_dave = [(await posts(graph, user, "hi"))[0] for user in (bob, dave)]
    start = await graph.log.last()
    async with following(feed, EventFilter(users=(carol,)), viewer=alice) as live:
        await repost(graph, carol, by_bob)
        shown = await repost(graph, carol, by_dave)
        assert numbers(await live.take(1)) == [shown]
    async with following(feed, EventFilter(users=(carol,)), after=start, viewer=alice) as replay:
        assert numbers(await replay.take(1)) == [shown]
