"""The home cache: complete above its floor, forgotten when in doubt, rebuilt beside everything else."""

import asyncio
from datetime import timedelta

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from tests.support.graph_worlds import (
    Open,
    background,
    befriend,
    cached,
    crowd,
    home,
    home_upwards,
    many_posts,
    newest,
    people,
    posts,
)
from tests.support.stores import Stop, runs


async def content(raw: Redis, viewer: int) -> tuple[list[int], int | None]:
    """Give the posts of a cache, oldest first, and its floor."""
    members = dict(await raw.zrange(f"home:{{{viewer}}}", 0, -1, withscores=True))
    floor = members.pop("f", None)
    return [int(post) for post in members if post.isdecimal()], None if floor is None else int(floor)


async def holds(raw: Redis, viewer: int, written: list[int], count: int) -> None:
    """Check that a cache holds the newest posts, and that its floor lies right below them."""
    held, floor = await content(raw, viewer)
    assert held == written[-count:]
    assert floor is not None
    assert written[-count - 1] <= floor < written[-count]


async def test_a_read_builds_the_cache_in_the_background(graph: Graph, raw: Redis) -> None:
    """The first answer comes by merging; then the cache holds everything, down to the beginning."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    written = await posts(graph, bob, "1", "2")
    assert await raw.exists(f"home:{{{alice}}}") == 0

    await cached(graph, alice)

    assert await content(raw, alice) == (written, 0)
    assert 0 < await raw.ttl(f"home:{{{alice}}}") <= 7 * 86400


async def test_publishing_creates_no_cache(graph: Graph, raw: Redis) -> None:
    """Who never reads, or not for a week, costs fan-out nothing."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)

    await posts(graph, bob, "1")
    await graph.worker().drain()

    assert [key async for key in raw.scan_iter("home:*")] == []


async def test_a_cache_keeps_the_newest_and_an_exact_floor(another: Open, raw: Redis) -> None:
    """Beyond its size the oldest make way, and what is below is still read, by merging."""
    graph = await another(home_size=5)
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    written = await posts(graph, bob, *"123456789")
    await cached(graph, alice)
    await holds(raw, alice, written, 5)

    written += await posts(graph, bob, "a", "b", "c")

    await holds(raw, alice, written, 5)
    for size in (1, 3, 5, 6, 100):
        assert await home(graph, alice, size) == written[::-1]
        assert await home_upwards(graph, alice, size) == written[::-1]


async def test_a_late_post_below_the_floor_does_not_enter(another: Open, raw: Redis) -> None:
    """A repeated fan-out of an old post leaves no island below the floor."""
    graph = await another(home_size=3)
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    written = await posts(graph, bob, *"123456")
    await cached(graph, alice)

    await graph.worker().drain()

    await holds(raw, alice, written, 3)


async def test_a_late_post_of_an_author_unfollowed_meanwhile_does_not_enter(another: Open) -> None:
    """The fan-out read its followers before the unfollow; the cache was rebuilt after it."""
    graph, slow = await another(), await another()
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    await cached(graph, alice)
    stop = Stop(slow.store, runs("insert", f"home:{{{alice}}}"))
    publishing = asyncio.create_task(slow.posts.publish(bob, "late"))
    await stop.reached.wait()

    await graph.follows.unfollow(alice, [bob])
    await cached(graph, alice)
    stop.resume()
    await publishing

    assert await home(graph, alice) == []


async def test_an_inactive_author_does_not_raise_the_floor(another: Open, raw: Redis) -> None:
    """Only authors with more posts than were read do."""
    graph = await another(home_size=40)
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob, carol)
    old = await posts(graph, carol, "old")
    many = await many_posts(graph, bob, 60)
    await cached(graph, alice)

    held, floor = await content(raw, alice)

    assert floor is not None
    assert held == [post for post in old + many if post > floor]
    assert floor >= many[-41]
    assert await home(graph, alice, 7) == many[::-1] + old


async def test_a_cache_lives_as_long_as_it_is_read(another: Open, raw: Redis) -> None:
    """Reading renews its life, at most once a day; otherwise it runs out."""
    graph = await another(hibernate_after=timedelta(days=7))
    [alice] = await people(graph, "alice")
    await posts(graph, alice, "1")
    await cached(graph, alice)
    key = f"home:{{{alice}}}"

    for left, renewed in ((6.5, False), (5.9, True), (0.1, True)):
        await raw.expire(key, int(left * 86400))
        await graph.timelines.home(alice, newest(1))
        assert (await raw.ttl(key) > 6.9 * 86400) == renewed


async def test_an_expired_cache_leaves_no_hole(graph: Graph, raw: Redis) -> None:
    """After hibernation the first page is whole, and so is the rebuilt cache."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    written = await posts(graph, bob, "1", "2")
    await cached(graph, alice)
    await raw.delete(f"home:{{{alice}}}")  # as expiry does
    written += await posts(graph, bob, "3")

    assert await home(graph, alice) == written[::-1]
    written += await posts(graph, bob, "4")
    await graph.timelines.wait_for_rebuilds()
    assert await home(graph, alice) == written[::-1]
    assert await content(raw, alice) == (written, 0)


@pytest.mark.parametrize("step", ["merge", "finish_rebuild"])
async def test_posts_published_while_a_cache_warms_are_in_it(
    graph: Graph, another: Open, raw: Redis, step: str
) -> None:
    """Whether they come before or after the merge, none is missed and none twice."""
    slow = await another()
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    written = await posts(graph, bob, "1")
    wanted = runs(step, keys.delivery(bob)) if step == "merge" else runs(step)
    stop = Stop(slow.store, wanted)
    assert await home(slow, alice) == written
    await stop.reached.wait()

    written += await posts(graph, bob, "2") + await posts(graph, alice, "3")
    assert await home(graph, alice) == written[::-1]
    stop.resume()
    await slow.timelines.wait_for_rebuilds()

    assert await content(raw, alice) == (written, 0)
    assert await home(graph, alice) == written[::-1]


async def test_what_is_published_right_before_a_cache_warms_is_in_it(graph: Graph, another: Open, raw: Redis) -> None:
    """The warming begins before anything is read: fan-out has passed the viewer by, so the merge must find it."""
    slow = await another()
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    written = await posts(graph, bob, "1")
    stop = Stop(slow.store, runs("begin_rebuild"))
    await slow.timelines.home(alice, newest(1))
    await stop.reached.wait()

    written += await posts(graph, bob, "2")
    stop.resume()
    await slow.timelines.wait_for_rebuilds()

    assert await content(raw, alice) == (written, 0)


async def test_a_cache_that_is_there_is_not_built_again(graph: Graph, another: Open, raw: Redis) -> None:
    """Of two readers who found none, the second leaves the first one's alone."""
    slow = await another()
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    written = await posts(graph, bob, "1")
    stop, merging = Stop(slow.store, runs("begin_rebuild")), Stop(slow.store, runs("finish_rebuild"))
    merging.resume()
    await slow.timelines.home(alice, newest(1))
    await stop.reached.wait()
    await cached(graph, alice)

    stop.resume()
    await slow.timelines.wait_for_rebuilds()

    assert not merging.reached.is_set()
    assert await content(raw, alice) == (written, 0)


async def test_what_was_inserted_below_the_merged_floor_is_dropped(another: Open, raw: Redis) -> None:
    """A warming cache takes any post; settling keeps only what is above the floor."""
    graph = await another(home_size=3)
    slow = await another(home_size=3)
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    written = await posts(graph, bob, *"123456")
    stop = Stop(slow.store, runs("finish_rebuild"))
    await slow.timelines.home(alice, newest(1))
    await stop.reached.wait()
    await graph.worker().drain()  # inserts all six

    stop.resume()
    await slow.timelines.wait_for_rebuilds()

    await holds(raw, alice, written, 3)
    assert await home(graph, alice, 2) == written[::-1]


async def test_a_cache_that_warmed_among_new_posts_keeps_its_size(another: Open, raw: Redis) -> None:
    """What was inserted meanwhile counts."""
    graph, slow = await another(home_size=3), await another(home_size=3)
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    await posts(graph, bob, *"1234")
    stop = Stop(slow.store, runs("finish_rebuild"))
    await slow.timelines.home(alice, newest(1))
    await stop.reached.wait()
    new = await posts(graph, bob, *"5678")

    stop.resume()
    await slow.timelines.wait_for_rebuilds()

    await holds(raw, alice, new, 3)


@pytest.mark.parametrize("change", ["follow", "unfollow", "expiry"])
async def test_a_change_during_warming_destroys_the_token(graph: Graph, another: Open, raw: Redis, change: str) -> None:
    """A merge that may be wrong is thrown away; pages are right before, and the next read begins anew."""
    slow = await another()
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob)
    by_bob, by_carol = await posts(graph, bob, "b"), await posts(graph, carol, "c")
    stop = Stop(slow.store, runs("finish_rebuild"))
    await slow.timelines.home(alice, newest(1))
    await stop.reached.wait()
    match change:
        case "follow":
            await befriend(graph, alice, carol)
            expected = by_carol + by_bob
        case "unfollow":
            await graph.follows.unfollow(alice, [bob])
            expected = []
        case _:
            await raw.delete(f"home:{{{alice}}}")
            expected = by_bob

    stop.resume()
    await slow.timelines.wait_for_rebuilds()

    assert await raw.exists(f"home:{{{alice}}}") == 0
    for _ in range(2):
        assert await home(graph, alice) == expected
        await cached(graph, alice)


async def test_a_rebuild_from_before_a_change_does_not_settle_its_successor(
    graph: Graph, another: Open, raw: Redis
) -> None:
    """Two rebuilds never mix: only the one whose token stands may finish."""
    first, second = await another(), await another()
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    by_alice, _ = await posts(graph, alice, "a"), await posts(graph, bob, "b")
    stops = []
    for process in (first, second):
        stops.append(Stop(process.store, runs("finish_rebuild")))
        await process.timelines.home(alice, newest(1))
        await stops[-1].reached.wait()
        await graph.follows.unfollow(alice, [bob])

    for process, stop in zip((first, second), stops, strict=True):
        stop.resume()
        await process.timelines.wait_for_rebuilds()

    assert await content(raw, alice) == (by_alice, 0)
    assert await home(graph, alice) == by_alice


async def test_a_rebuild_that_died_is_given_up(graph: Graph, another: Open, raw: Redis) -> None:
    """A half-built cache expires within a minute; meanwhile pages come by merging."""
    dying = await another()
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    written = await posts(graph, bob, "1")
    stop = Stop(dying.store, runs("finish_rebuild"))
    await dying.timelines.home(alice, newest(1))
    await stop.reached.wait()
    await dying.timelines.close()

    assert 0 < await raw.ttl(f"home:{{{alice}}}") <= 60
    written += await posts(graph, bob, "2")
    assert await home(graph, alice) == written[::-1]
    await raw.delete(f"home:{{{alice}}}")
    await cached(graph, alice)
    assert await content(raw, alice) == (written, 0)


async def test_reads_at_once_rebuild_once(graph: Graph, raw: Redis) -> None:
    """A hundred reads of a cold home start one rebuild."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    await posts(graph, bob, "1")
    await raw.config_resetstat()

    await asyncio.gather(*(graph.timelines.home(alice, newest(1)) for _ in range(100)))
    await graph.timelines.wait_for_rebuilds()

    assert await content(raw, alice) == (await home(graph, alice), 0)


async def test_caches_stay_right_while_everything_happens(another: Open) -> None:
    """Posts, deletions, follows, reads and forgotten caches, from two instances and a worker at once."""
    instances = [await another(home_size=4), await another(home_size=4)]
    alice, *authors = await crowd(instances[0], 5)
    await instances[0].follows.follow(alice, authors[:3])
    written: list[list[int]] = [[] for _ in authors]

    async def act(n: int, author: int) -> None:
        for step in range(25):
            instance = instances[(n + step) % 2]
            written[n] += await posts(instance, author, f"{n} {step}")
            if step % 5 == 4:
                await instance.posts.delete(author, written[n].pop(0))
            if step % 7 == n:
                change = instance.follows.unfollow if step % 2 else instance.follows.follow
                await change(alice, [author])
            page = await instance.timelines.home(alice, newest(3))
            assert [post.id for post in page.items] == sorted((post.id for post in page.items), reverse=True)

    async with background(instances[0].worker().run()):
        await asyncio.gather(*(act(n, author) for n, author in enumerate(authors)))
        await instances[1].worker().drain()
    for instance in instances:
        await instance.timelines.wait_for_rebuilds()

    followed = await instances[0].follows.followed_by(alice)
    expected = sorted((p for n, a in enumerate(authors) if a in followed for p in written[n]), reverse=True)
    for size in (1, 3, 50):
        assert await home(instances[0], alice, size) == expected
        assert await home_upwards(instances[1], alice, size) == expected
        await cached(instances[1], alice)


async def test_settling_a_cache_sends_no_more_than_it_holds(another: Open) -> None:
    """However many people the viewer follows: the store is not held up by posts that are trimmed at once."""
    graph = await another(home_size=10)
    alice, *authors = await crowd(graph, 31)
    await graph.follows.follow(alice, authors)
    for author in authors:
        await many_posts(graph, author, 5)
    stop = Stop(graph.store, runs("finish_rebuild"))
    await graph.timelines.home(alice, newest(1))
    await stop.reached.wait()
    stop.resume()
    await graph.timelines.wait_for_rebuilds()

    assert len(stop.command) < 30
