"""The home cache: its content and floor, insertions, expiry and concurrent rebuilds."""

import asyncio
from typing import Any

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
    """Return the posts of a cache, oldest first, and its floor."""
    rows: Any = await raw.zrange(keys.home(viewer), 0, -1, withscores=True)
    members: dict[str, float] = dict(rows)
    floor = members.pop("f", None)
    return [int(post) for post in members if post.isdecimal()], None if floor is None else int(floor)


async def assert_holds(raw: Redis, viewer: int, written: list[int], count: int) -> None:
    """Assert that a cache holds the newest posts, and that its floor is just below them."""
    held, floor = await content(raw, viewer)
    assert held == written[-count:]
    assert floor is not None
    assert written[-count - 1] <= floor < written[-count]


async def test_a_read_builds_the_cache_in_the_background(graph: Graph, raw: Redis) -> None:
    """The first read merges. Afterwards the cache holds the whole timeline."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    written = await posts(graph, bob, "1", "2")
    assert await raw.exists(keys.home(alice)) == 0

    await cached(graph, alice)

    assert await content(raw, alice) == (written, 0)
    assert 0 < await raw.ttl(keys.home(alice)) <= 7 * 86400


async def test_publishing_creates_no_cache(graph: Graph, raw: Redis) -> None:
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)

    await posts(graph, bob, "1")
    await graph.worker().drain()

    assert [key async for key in raw.scan_iter("home:*")] == []


async def test_a_full_cache_drops_its_oldest_posts_and_raises_its_floor(another: Open, raw: Redis) -> None:
    """Posts below the floor are read by merging."""
    graph = await another(home_size=5)
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    written = await posts(graph, bob, *"123456789")
    await cached(graph, alice)
    await assert_holds(raw, alice, written, 5)

    written += await posts(graph, bob, "a", "b", "c")

    await assert_holds(raw, alice, written, 5)
    for size in (1, 3, 5, 6, 100):
        assert await home(graph, alice, size) == written[::-1]
        assert await home_upwards(graph, alice, size) == written[::-1]


async def test_a_repeated_fan_out_inserts_nothing_below_the_floor(another: Open, raw: Redis) -> None:
    graph = await another(home_size=3)
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    written = await posts(graph, bob, *"123456")
    await cached(graph, alice)

    await graph.worker().drain()

    await assert_holds(raw, alice, written, 3)


async def test_a_post_of_an_author_unfollowed_during_the_fan_out_is_not_inserted(another: Open) -> None:
    """The fan-out reads the followers before the unfollow, and inserts after the cache was rebuilt."""
    graph, slow = await another(), await another()
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    await cached(graph, alice)
    stop = Stop(slow.store, runs("insert", keys.home(alice)))
    publishing = asyncio.create_task(slow.posts.publish(bob, "late"))
    await stop.reached.wait()

    await graph.follows.unfollow(alice, [bob])
    await cached(graph, alice)
    stop.resume()
    await publishing

    assert await home(graph, alice) == []


async def test_an_inactive_author_does_not_raise_the_floor(another: Open, raw: Redis) -> None:
    """Only authors with more posts than were read raise the floor."""
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


async def test_no_post_is_missing_after_a_cache_expired(graph: Graph, raw: Redis) -> None:
    """Neither the first page nor the rebuilt cache lacks a post."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    written = await posts(graph, bob, "1", "2")
    await cached(graph, alice)
    await raw.delete(keys.home(alice))  # as if it expired
    written += await posts(graph, bob, "3")

    assert await home(graph, alice) == written[::-1]
    written += await posts(graph, bob, "4")
    await graph.timelines.wait_for_rebuilds()
    assert await home(graph, alice) == written[::-1]
    assert await content(raw, alice) == (written, 0)


@pytest.mark.parametrize("step", ["merge", "finish_rebuild"])
async def test_posts_published_during_a_rebuild_are_in_the_cache(
    graph: Graph, another: Open, raw: Redis, step: str
) -> None:
    """Posts published before and after the merge are in the cache once."""
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


async def test_a_post_published_right_before_a_rebuild_is_in_the_cache(graph: Graph, another: Open, raw: Redis) -> None:
    """Fan-out skips the viewer, so the merge must find the post: a rebuild begins before it reads anything."""
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


async def test_an_existing_cache_is_not_rebuilt(graph: Graph, another: Open, raw: Redis) -> None:
    """If two reads find no cache, the slower one does not replace the cache of the faster one."""
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


async def test_posts_inserted_below_the_floor_during_a_rebuild_are_dropped(another: Open, raw: Redis) -> None:
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

    await assert_holds(raw, alice, written, 3)
    assert await home(graph, alice, 2) == written[::-1]


async def test_posts_inserted_during_a_rebuild_count_towards_the_size(another: Open, raw: Redis) -> None:
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

    await assert_holds(raw, alice, new, 3)


@pytest.mark.parametrize("change", ["follow", "unfollow", "expiry"])
async def test_a_rebuild_is_discarded_after_a_change(graph: Graph, another: Open, raw: Redis, change: str) -> None:
    """Pages are correct meanwhile, and the next read begins another rebuild."""
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
            await raw.delete(keys.home(alice))
            expected = by_bob

    stop.resume()
    await slow.timelines.wait_for_rebuilds()

    assert await raw.exists(keys.home(alice)) == 0
    for _ in range(2):
        assert await home(graph, alice) == expected
        await cached(graph, alice)


async def test_a_discarded_rebuild_does_not_finish_the_next_one(graph: Graph, another: Open, raw: Redis) -> None:
    """Only the rebuild whose token is in the cache may finish."""
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


async def test_an_unfinished_rebuild_expires_within_a_minute(graph: Graph, another: Open, raw: Redis) -> None:
    """Until then pages are read by merging."""
    dying = await another()
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    written = await posts(graph, bob, "1")
    stop = Stop(dying.store, runs("finish_rebuild"))
    await dying.timelines.home(alice, newest(1))
    await stop.reached.wait()
    await dying.timelines.close()

    assert 0 < await raw.ttl(keys.home(alice)) <= 60
    written += await posts(graph, bob, "2")
    assert await home(graph, alice) == written[::-1]
    await raw.delete(keys.home(alice))
    await cached(graph, alice)
    assert await content(raw, alice) == (written, 0)


async def test_concurrent_reads_rebuild_once(graph: Graph, raw: Redis) -> None:
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    await posts(graph, bob, "1")
    await raw.config_resetstat()

    await asyncio.gather(*(graph.timelines.home(alice, newest(1)) for _ in range(100)))
    await graph.timelines.wait_for_rebuilds()

    assert await content(raw, alice) == (await home(graph, alice), 0)


async def test_caches_are_correct_under_concurrent_changes(another: Open) -> None:
    """Two processes and a worker publish, delete, follow, unfollow and read concurrently."""
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


async def test_a_rebuild_sends_no_more_posts_than_a_cache_holds(another: Open) -> None:
    """The limit holds however many users the viewer follows."""
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
