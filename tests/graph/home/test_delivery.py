"""Delivery modes: push, pull and hybrid show the same home timelines, even during promotions."""

import asyncio
import math
import random
from typing import Any

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.log.events import PostPublished
from graph.projections.mode import Mode
from tests.support.graph_worlds import (
    Open,
    background,
    befriend,
    cached,
    crowd,
    home,
    home_upwards,
    newest,
    people,
    posts,
)
from tests.support.stores import Crashed, Fault, Stop, runs

PUSH, PULL = math.inf, 0


async def mode(graph: Graph, author: int) -> str | None:
    """Return the delivery mode, without the post that caused the pull mode."""
    found: str | None = await graph.store.run("GET", keys.delivery(author))
    return "pull" if found and found.startswith("pull:") else found


async def in_cache(raw: Redis, viewer: int) -> set[str]:
    members: Any = await raw.zrange(keys.home(viewer), 0, -1)
    return set(members)


class ExpectedWorld:
    """The expected content of a random world: follows, and posts that are not deleted."""

    def __init__(self, size: int, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - reproducible
        self.size = size
        self.ids: list[int] = []
        self.follows: dict[int, set[int]] = {}
        self.posts: dict[int, list[int]] = {}

    async def begin(self, graph: Graph) -> None:
        """Create the users. Some are followed much more often than others."""
        self.ids = await crowd(graph, self.size)
        self.follows = {user: set() for user in self.ids}
        self.posts = {user: [] for user in self.ids}

    async def step(self, graph: Graph) -> None:
        """Perform a random action through this process."""
        viewer = self.random.choice(self.ids)
        author = self.ids[min(int(self.random.expovariate(0.5)), self.size - 1)]
        match self.random.choices(["post", "delete", "follow", "unfollow", "read"], [6, 2, 5, 2, 5])[0]:
            case "post":
                self.posts[author] += await posts(graph, author, "a post")
            case "delete" if self.posts[author]:
                gone = self.posts[author].pop(self.random.randrange(len(self.posts[author])))
                await graph.posts.delete(author, gone)
            case "follow" if viewer != author:
                await graph.follows.follow(viewer, [author])
                self.follows[viewer].add(author)
            case "unfollow":
                await graph.follows.unfollow(viewer, [author])
                self.follows[viewer].discard(author)
            case "read":
                await cached(graph, viewer)
            case _:
                pass

    def home(self, viewer: int) -> list[int]:
        """Return the expected home timeline."""
        return sorted((post for author in {viewer, *self.follows[viewer]} for post in self.posts[author]), reverse=True)

    async def check(self, *graphs: Graph, size: int) -> None:
        """Compare the pages of all users, in both directions and through every process, with the expected timelines."""
        for viewer in self.ids:
            for graph in graphs:
                assert await home(graph, viewer, size) == self.home(viewer)
                assert await home_upwards(graph, viewer, size) == self.home(viewer)


@pytest.mark.parametrize("limit", [PUSH, PULL, 3], ids=["push", "pull", "hybrid"])
async def test_push_pull_and_hybrid_give_the_same_pages(another: Open, limit: float) -> None:
    """All modes give the same pages, before and after a drain."""
    seed = random.randrange(3)  # noqa: S311 - reproducible
    graph = await another(push_limit=limit, home_size=6)
    world = ExpectedWorld(10, seed)
    await world.begin(graph)
    for _ in range(120):
        await world.step(graph)

    await world.check(graph, size=1 + seed * 3)
    await graph.worker().drain()
    await world.check(graph, size=4)


async def test_processes_with_different_limits_give_the_same_pages(another: Open) -> None:
    """The processes take turns on one store, with a worker that has any of the limits."""
    seed = random.randrange(4)  # noqa: S311 - reproducible
    graphs = [await another(push_limit=limit, home_size=6, sync_followers=2) for limit in (PUSH, PULL, 2, 5)]
    world = ExpectedWorld(12, seed)
    await world.begin(graphs[0])
    for step in range(200):
        await world.step(world.random.choice(graphs))
        if step % 20 == 0:
            await world.random.choice(graphs).worker().drain()

    await graphs[seed].worker().drain()
    await world.check(*graphs, size=3)
    for _ in range(60):
        await world.step(graphs[-seed])
    await graphs[seed].worker().drain()
    await world.check(*graphs, size=5)


@pytest.mark.parametrize("seed", range(4))
async def test_processes_with_different_limits_may_run_concurrently(another: Open, seed: int) -> None:
    """They publish, read and project at the same time; after a drain the pages are correct."""
    graphs = [await another(push_limit=limit, home_size=5, sync_followers=1) for limit in (PUSH, PULL, 2)]
    rng = random.Random(seed)  # noqa: S311 - reproducible
    viewers, authors = await crowd(graphs[0], 4, "viewer"), await crowd(graphs[0], 2, "author")
    for viewer in viewers:
        await graphs[0].follows.follow(viewer, authors)
    written: list[int] = []

    async def act(graph: Graph, delays: list[int]) -> None:
        for delay in delays:
            for _ in range(delay):
                await asyncio.sleep(0)
            if delay % 2:
                written.extend(await posts(graph, authors[delay % 3 % 2], "x"))
            else:
                await graph.timelines.home(viewers[delay % 4], newest(2))

    async with background(graphs[1].worker().run()):
        await asyncio.gather(*(act(graph, [rng.randrange(30) for _ in range(25)]) for graph in graphs))
        await graphs[2].worker().drain()

    for graph in graphs:
        await graph.timelines.wait_for_rebuilds()
    for viewer in viewers:
        assert await home(graphs[0], viewer, 4) == sorted(written, reverse=True)


async def test_pull_pushes_only_to_the_author(another: Open, raw: Redis) -> None:
    """With a limit of zero, the followers' caches hold a mark instead of the posts."""
    graph = await another(push_limit=PULL)
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    await cached(graph, alice, bob)

    written = await posts(graph, bob, "1", "2")
    await graph.worker().drain()

    assert await mode(graph, bob) == "pull"
    assert await in_cache(raw, alice) == {"f", f"a{bob}"}
    assert await in_cache(raw, bob) == {"f", *map(str, written)}
    assert await home(graph, alice) == written[::-1]


async def test_hybrid_pushes_authors_below_the_limit_and_pulls_the_others(another: Open, raw: Redis) -> None:
    """A cache that is rebuilt later has the same marks."""
    graph = await another(push_limit=2)
    star, small, *fans = await crowd(graph, 5)
    for fan in fans:
        await befriend(graph, fan, star)
    await befriend(graph, fans[0], small)
    await cached(graph, *fans[:2])

    [pushed] = await posts(graph, small, "s")
    [merged] = await posts(graph, star, "l")
    await cached(graph, fans[2])

    assert (await mode(graph, star), await mode(graph, small)) == ("pull", None)
    assert await in_cache(raw, fans[0]) == {"f", str(pushed), f"a{star}"}
    assert await in_cache(raw, fans[1]) == await in_cache(raw, fans[2]) == {"f", f"a{star}"}
    assert await home(graph, fans[0]) == [merged, pushed]


async def test_an_author_returns_to_push_at_half_the_limit(another: Open, raw: Redis) -> None:
    """The mode does not change between half the limit and the limit, so it does not oscillate."""
    graph = await another(push_limit=2)
    star, *fans = await crowd(graph, 4)
    for fan in fans:
        await befriend(graph, fan, star)
    await posts(graph, star, "1")
    states = []
    for fan in fans[:2]:
        await graph.follows.unfollow(fan, [star])
        await posts(graph, star, "x")
        states.append(await mode(graph, star))

    assert states == ["pull", None]
    assert len(await home(graph, fans[2])) == 3


@pytest.mark.parametrize("step", ["begin_promotion", "mark", "finish_promotion"])
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
async def test_a_promotion_is_finished_after_a_crash(another: Open, raw: Redis, step: str, late: bool) -> None:
    """Projecting the post again finishes the promotion. Meanwhile, no page lacks a post."""
    graph, dying = await another(push_limit=PULL), await another(push_limit=PULL)
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    await cached(graph, alice)
    Fault(dying.store, runs(step), Crashed(), after=late)
    with pytest.raises(Crashed):
        await dying.posts.publish(bob, "1")
    first = await graph.log.last()
    second = await posts(graph, bob, "2")
    assert set(second) <= set(await home(graph, alice))

    await graph.worker().drain()

    assert await home(graph, alice) == [*second, first]
    assert await mode(graph, bob) == "pull"


async def test_a_promotion_is_finished_although_its_post_was_deleted(another: Open, raw: Redis) -> None:
    """The author does not stay in the promoting mode after a crash and a deletion."""
    graph, dying = await another(push_limit=PULL), await another(push_limit=PULL)
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    Fault(dying.store, runs("mark"), Crashed())
    with pytest.raises(Crashed):
        await dying.posts.publish(bob, "1")
    await graph.posts.delete(bob, await graph.log.last())

    written = await posts(graph, bob, "2", "3")
    await graph.worker().drain()

    assert await home(graph, alice) == written[::-1]
    assert await mode(graph, bob) == "pull"


async def test_a_return_to_push_cancels_a_promotion(another: Open, raw: Redis) -> None:
    """The promoting process then pushes its post."""
    pull, push = await another(push_limit=PULL), await another(push_limit=PUSH)
    alice, bob = await people(push, "alice", "bob")
    await befriend(push, alice, bob)
    await cached(push, alice)
    stop = Stop(pull.store, runs("finish_promotion"))
    request = asyncio.create_task(pull.posts.publish(bob, "1"))
    await stop.reached.wait()
    second = await posts(push, bob, "2")
    assert await mode(pull, bob) is None

    stop.resume()
    first = await request

    assert await mode(pull, bob) is None
    assert await home(push, alice) == [*second, first.id]
    third = await posts(push, bob, "3")
    assert await home(pull, alice) == [*third, *second, first.id]


@pytest.mark.parametrize("moment", ["begin_rebuild", "merge", "finish_rebuild"])
async def test_a_cache_rebuilt_during_a_promotion_is_marked(another: Open, raw: Redis, moment: str) -> None:
    """The cache is marked whatever step the rebuild has reached when the author's mode becomes pull."""
    pull, slow = await another(push_limit=PULL), await another(push_limit=PULL)
    alice, bob = await people(pull, "alice", "bob")
    await befriend(pull, alice, bob)
    wanted = runs(moment, keys.delivery(bob)) if moment == "merge" else runs(moment)
    stop = Stop(slow.store, wanted)
    await slow.timelines.home(alice, newest(1))
    await stop.reached.wait()
    written = await posts(pull, bob, "1")

    stop.resume()
    await slow.timelines.wait_for_rebuilds()
    written += await posts(pull, bob, "2")

    assert f"a{bob}" in await in_cache(raw, alice)
    assert await home(pull, alice) == written[::-1]


async def test_a_follow_during_a_promotion_is_marked(another: Open, raw: Redis) -> None:
    """A viewer who follows after the marking has passed the follower list still sees the author's posts."""
    pull, slow = await another(push_limit=PULL), await another(push_limit=PULL)
    alice, bob, carol = await people(pull, "alice", "bob", "carol")
    await befriend(pull, carol, bob)
    await cached(pull, alice)
    stop = Stop(slow.store, runs("finish_promotion"))
    request = asyncio.create_task(slow.posts.publish(bob, "1"))
    await stop.reached.wait()
    await befriend(pull, alice, bob)
    await cached(pull, alice)

    stop.resume()
    first = await request
    second = await posts(pull, bob, "2")

    assert f"a{bob}" in await in_cache(raw, alice)
    assert await home(pull, alice) == [*second, first.id]


async def test_a_cache_rebuilt_right_before_a_promotion_begins_is_marked(another: Open, raw: Redis) -> None:
    """Until a promotion begins, caches are rebuilt without the mark; the promotion marks them."""
    pull, slow = await another(push_limit=PULL), await another(push_limit=PULL)
    alice, bob = await people(pull, "alice", "bob")
    await befriend(pull, alice, bob)
    stop = Stop(slow.store, runs("begin_promotion"))
    request = asyncio.create_task(slow.posts.publish(bob, "1"))
    await stop.reached.wait()
    await cached(pull, alice)

    stop.resume()
    first = await request
    second = await posts(pull, bob, "2")

    assert f"a{bob}" in await in_cache(raw, alice)
    assert await home(pull, alice) == [*second, first.id]


async def test_an_unfollow_during_a_promotion_is_not_marked(another: Open, raw: Redis) -> None:
    """The promotion reads the followers before the unfollow. A mark would show the author's posts."""
    pull, slow = await another(push_limit=PULL), await another(push_limit=PULL)
    alice, bob, carol = await people(pull, "alice", "bob", "carol")
    await befriend(pull, alice, bob)
    await befriend(pull, carol, bob)
    stop = Stop(slow.store, runs("mark"))
    request = asyncio.create_task(slow.posts.publish(bob, "1"))
    await stop.reached.wait()
    await pull.follows.unfollow(alice, [bob])
    await cached(pull, alice)

    stop.resume()
    await request

    assert await in_cache(raw, alice) == {"f"}
    assert await home(pull, alice) == []


async def test_a_superseded_promotion_does_not_finish_the_next_one(another: Open) -> None:
    """After a promotion, a return to push and another promotion, only the last one may set the mode to pull."""
    first, push, third = [await another(push_limit=limit) for limit in (PULL, PUSH, PULL)]
    alice, bob = await people(push, "alice", "bob")
    await befriend(push, alice, bob)
    finishing = Stop(first.store, runs("finish_promotion"))
    request = asyncio.create_task(first.posts.publish(bob, "1"))
    await finishing.reached.wait()  # alice has no cache and no mark
    event = await push.log.get(await push.log.last())
    assert event is not None
    assert isinstance(event.body, PostPublished)
    written = [event.number, *await posts(push, bob, "2")]  # returns to push
    await cached(push, alice)  # without a mark
    Fault(third.store, runs("mark"), Crashed())
    with pytest.raises(Crashed):
        await third.projections.project([event], Mode.WORKER)  # begins a promotion, and dies before marking

    finishing.resume()
    await request
    written += await posts(first, bob, "3")
    await first.worker().drain()

    assert await home(first, alice) == written[::-1]
