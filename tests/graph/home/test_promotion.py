"""Promotion of authors with very many followers, in steps that workers take one after another."""

import asyncio
import math
from datetime import timedelta

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.home.pacing import UNPACED
from graph.log.events import PostPublished
from graph.store.commands import script
from graph.worker.consumer import GROUP
from tests.graph.home.test_delivery import in_cache, mode
from tests.graph.home.test_fan_out import star_with_fans
from tests.graph.worker.unprojected import append
from tests.support.graph_worlds import PATIENCE, Open, append_events, background, cached, home, posts, reached
from tests.support.stores import Crashed, Fault, LostShard, Stop, of_users, runs

STEP, FANS = 4, 18
STEPS = 5


async def is_promoted(graph: Graph, raw: Redis, star: int, fans: list[int]) -> None:
    """Check that reads pull the author, and that every cache is marked."""
    assert await mode(graph, star) == "pull"
    for fan in fans:
        assert f"a{star}" in await in_cache(raw, fan)
    assert await raw.zcard(keys.OPEN_FANOUTS) == await raw.xlen(keys.FANOUTS) == 0


async def steps_of(raw: Redis) -> int:
    """Return the number of tasks that were ever added."""
    return int((await raw.xinfo_stream(keys.FANOUTS))["entries-added"])


async def test_a_large_author_is_promoted_step_by_step(another: Open, raw: Redis) -> None:
    """The post that causes the promotion is pushed. The next post is not."""
    graph = await another(fan_out_task=STEP, sync_followers=0, push_limit=10)
    star, fans = await star_with_fans(graph, raw, FANS)
    [first] = await append(graph, PostPublished(star, "1"))

    assert await graph.worker().drain() == first

    await is_promoted(graph, raw, star, fans)
    assert await steps_of(raw) == STEPS + math.ceil(FANS / STEP)  # and the tasks of the fan-out
    assert str(first) in await in_cache(raw, fans[0])
    [second] = await posts(graph, star, "2")
    await graph.worker().drain()
    assert str(second) not in await in_cache(raw, fans[0])
    assert await home(graph, fans[0]) == [second, first]


@pytest.mark.parametrize("step", [STEP, 100], ids=["in steps", "at once"])
async def test_marks_that_a_failover_has_lost_are_restored(another: Open, raw: Redis, step: int) -> None:
    """The recovery reprojects the post that caused the promotion. Later posts cause no promotion."""
    graph = await another(fan_out_task=step, sync_followers=0, push_limit=10)
    star, fans = await star_with_fans(graph, raw, FANS)
    await append(graph, PostPublished(star, "1"))
    await graph.worker().drain()
    await append(graph, PostPublished(star, "2"))
    promoted = Fault(graph.store, runs("mark"), Crashed())
    await graph.worker().drain()
    assert promoted.left == 1
    promoted.left = 0
    await raw.zrem(keys.home(fans[9]), f"a{star}")

    await raw.delete(keys.ADDED_FANOUTS)
    await raw.xgroup_setid(keys.LOG, GROUP, "0")
    await graph.worker().drain()

    await is_promoted(graph, raw, star, fans)


async def test_posts_during_a_promotion_do_not_begin_another(another: Open, raw: Redis) -> None:
    graph, slow = [await another(fan_out_task=STEP, sync_followers=0, push_limit=10) for _ in range(2)]
    star, fans = await star_with_fans(graph, raw, FANS)
    await append(graph, PostPublished(star, "1"))
    stop = Stop(slow.store, runs("mark"))

    async with background(slow.worker(timedelta(seconds=2)).run()):  # the other one may stop while it reads a task
        await stop.reached.wait()
        attempt = await mode(graph, star)
        [second] = await append(graph, PostPublished(star, "2"))
        async with background(graph.worker(timedelta(hours=1)).run()):
            await reached(lambda: holds(raw, fans[0], second), 1)
            assert await mode(graph, star) == attempt
        stop.resume()
        await reached(graph.log.watermark, second)

    await is_promoted(graph, raw, star, fans)


async def test_a_stream_leaves_a_promotion_to_workers(another: Open, raw: Redis) -> None:
    """A stream projects only what its reader's next page needs, however many followers an author has."""
    graph = await another(sync_followers=0, push_limit=10)
    star, fans = await star_with_fans(graph, raw, FANS)
    [event] = await append_events(graph, [PostPublished(star, "1")])

    await graph.projections.catch_up(fans[0], [event])

    assert await mode(graph, star) is None
    assert await home(graph, fans[0]) == [event.number]
    await graph.worker().drain()
    assert await mode(graph, star) == "pull"


async def holds(raw: Redis, viewer: int, post: int) -> int:
    return str(post) in await in_cache(raw, viewer)


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", ["begin_promotion", "add_promotion_step", "mark", "finish_promotion"])
async def test_a_promotion_continues_after_a_crash(another: Open, raw: Redis, step: str, late: bool) -> None:
    """The promotion continues with the interrupted step, not from the beginning."""
    graph, dying = [await another(fan_out_task=STEP, sync_followers=0, push_limit=10) for _ in range(2)]
    star, fans = await star_with_fans(graph, raw, FANS)
    [post] = await append(graph, PostPublished(star, "1"))
    fault = Fault(dying.store, runs(step), Crashed(), after=late, times=10)
    async with background(dying.worker(timedelta(hours=1)).run()):
        while fault.left == 10:  # noqa: ASYNC110 - the worker logs the failure and goes on
            await asyncio.sleep(0.01)

    assert await asyncio.wait_for(graph.worker(timedelta(0)).drain(), PATIENCE) == post

    await is_promoted(graph, raw, star, fans)
    assert await steps_of(raw) <= STEPS + 1 + math.ceil(FANS / STEP)


async def test_a_promotion_waits_for_a_lost_shard(another: Open, raw: Redis) -> None:
    """The promotion continues where it stopped."""
    graph = await another(fan_out_task=STEP, sync_followers=0, push_limit=10)
    star, fans = await star_with_fans(graph, raw, FANS)
    shard = LostShard(graph.store, of_users(fans[9]))
    [post] = await append(graph, PostPublished(star, "1"))

    async with background(graph.worker().run()):
        await reached(lambda: refusals(shard), 4)
        shard.heal()
        await reached(graph.log.watermark, post)

    await is_promoted(graph, raw, star, fans)
    assert await steps_of(raw) == STEPS + math.ceil(FANS / STEP)


async def test_a_step_that_two_workers_take_has_one_next_step(another: Open, raw: Redis) -> None:
    """The slower one finds that the step is no longer pending."""
    graph = await another(fan_out_task=STEP, sync_followers=0, push_limit=10)
    star, _ = await star_with_fans(graph, raw, FANS)
    await append(graph, PostPublished(star, "1"))
    worker = graph.worker()
    await worker._project_entries(await worker._events.read(graph.store))
    [(entry, words)] = await worker._tasks.read(graph.store)
    assert words is not None
    before = await raw.zcard(keys.OPEN_FANOUTS)

    for _ in range(2):
        await graph.fan_outs.work(entry, words, GROUP)(UNPACED)

    assert await raw.zcard(keys.OPEN_FANOUTS) == await raw.xlen(keys.FANOUTS) == before


async def refusals(shard: LostShard) -> int:
    return shard.refused


async def test_a_return_to_push_ends_a_promotion_in_steps(another: Open, raw: Redis) -> None:
    graph = await another(fan_out_task=STEP, sync_followers=0, push_limit=10)
    push = await another(fan_out_task=STEP, sync_followers=0)
    star, fans = await star_with_fans(graph, raw, FANS)
    await append(graph, PostPublished(star, "1"))
    worker = graph.worker()
    await worker._project_entries(await worker._events.read(graph.store))
    assert str(await mode(graph, star)).startswith("promoting:")

    [second] = await append(push, PostPublished(star, "2"))
    await push.worker().drain()

    assert await mode(graph, star) is None
    for fan in fans:
        assert f"a{star}" not in await in_cache(raw, fan)
    await cached(push, fans[0])
    assert str(second) in await in_cache(raw, fans[0])


async def test_a_promotion_does_not_begin_if_the_mode_has_changed(graph: Graph) -> None:
    """Otherwise it would run concurrently with the promotion of a faster process."""
    await graph.store.run("SET", keys.delivery(7), "pull:8")

    begun = await graph.store.run(*script("begin_promotion").call([keys.delivery(7)], "", "promoting:9:token"))

    assert (begun, await graph.store.run("GET", keys.delivery(7))) == (0, "pull:8")
