"""Long fan-outs: tasks that workers share, crashes, and follows during a fan-out."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest
from redis.asyncio import Redis

from graph import Graph
from graph.log.events import Followed, PostPublished
from graph.store.commands import Command
from graph.worker.consumer import MAX_DELIVERIES, create_groups
from tests.support.graph_worlds import (
    PATIENCE,
    Open,
    append_events,
    background,
    befriend,
    crowd,
    dead_letters,
    home,
    posts,
    reached,
)
from tests.support.stores import Crashed, Fault, HookedStore, Stop, runs

FOREVER = timedelta(hours=1)


async def star_with_fans(graph: Graph, raw: Redis, fans: int) -> tuple[int, list[int]]:
    """Create a user with followers, each of whom has an empty home cache."""
    star, *followers = await crowd(graph, fans + 1)
    await graph.commit([Followed(fan, star) for fan in followers])
    await graph.worker().drain()
    async with raw.pipeline(transaction=False) as pipeline:
        for fan in followers:
            pipeline.zadd(f"home:{{{fan}}}", {"f": 0})
        await pipeline.execute()
    return star, followers


async def served(raw: Redis, fans: list[int], post: int) -> list[int]:
    """Return the followers whose caches hold the post."""
    async with raw.pipeline(transaction=False) as pipeline:
        for fan in fans:
            pipeline.zscore(f"home:{{{fan}}}", str(post))
        scores = await pipeline.execute()
    return [fan for fan, score in zip(fans, scores, strict=True) if score is not None]


async def test_the_watermark_waits_for_all_tasks_of_a_fan_out(another: Open, raw: Redis) -> None:
    """The event is acknowledged, and the watermark stays below it until the last task is done."""
    graph = await another(fan_out_task=10, sync_followers=3)
    star, fans = await star_with_fans(graph, raw, 34)
    [post] = await posts(graph, star, "hi")
    assert await served(raw, fans, post) == fans[-3:]
    worker = graph.worker(timedelta(0))
    await create_groups(graph.store)

    watermark = await worker._project_entries(await worker._events.read(graph.store))

    assert watermark == post - 1
    assert await raw.zcard("{log}:fanouts:open") == 4
    for left in (3, 2, 1):
        assert await worker._run_tasks(await worker._tasks.read(graph.store)) == post - 1
        assert await raw.zcard("{log}:fanouts:open") == left
    assert await worker._run_tasks(await worker._tasks.read(graph.store)) == post
    assert await served(raw, fans, post) == fans
    assert await raw.xlen("{log}:fanouts") == 0


async def resume(stop: Stop) -> None:
    await stop.reached.wait()
    stop.resume()


async def test_two_workers_share_one_fan_out(another: Open, raw: Redis) -> None:
    first, second = await another(fan_out_task=5, sync_followers=1), await another(fan_out_task=5)
    star, fans = await star_with_fans(first, raw, 60)
    stops = [Stop(graph.store, runs("insert")) for graph in (first, second)]
    [event] = await append_events(first, [PostPublished(star, "hi")])
    workers = [asyncio.create_task(graph.worker(FOREVER).run()) for graph in (first, second)]
    await asyncio.gather(*map(resume, stops))
    await reached(lambda: first.log.watermark(), event.number)
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)

    assert await served(raw, fans, event.number) == fans


@pytest.mark.parametrize("after", [False, True])
async def test_the_task_of_a_dead_worker_is_claimed(another: Open, raw: Redis, after: bool) -> None:
    """The task is claimed when the worker's lease has expired. Until then the watermark waits."""
    graph, dying = await another(fan_out_task=4), await another(fan_out_task=4)
    star, fans = await star_with_fans(graph, raw, 17)
    [event] = await append_events(graph, [PostPublished(star, "hi")])
    Fault(dying.store, runs("insert", f"home:{{{fans[6]}}}"), Crashed(), after=after, times=100)
    await create_groups(dying.store)
    worker = dying.worker(FOREVER)
    await worker._project_entries(await worker._events.read(dying.store))
    while tasks := await worker._tasks.read(dying.store):
        await worker._run_tasks(tasks)
    assert await graph.log.watermark() < event.number

    assert await graph.worker(timedelta(0)).drain() == event.number
    assert await served(raw, fans, event.number) == fans


async def test_a_stopped_worker_releases_its_lease(another: Open, raw: Redis) -> None:
    """Another worker does not wait for the lease to expire."""
    graph, stopped = await another(fan_out_task=4), await another(fan_out_task=4)
    star, fans = await star_with_fans(graph, raw, 9)
    [event] = await append_events(graph, [PostPublished(star, "hi")])
    stop = Stop(stopped.store, runs("insert", f"home:{{{fans[0]}}}"))
    running = asyncio.create_task(stopped.worker(FOREVER).run())
    await stop.reached.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    stop.resume()

    async with asyncio.timeout(PATIENCE):
        assert await graph.worker(FOREVER).drain() == event.number
    assert await served(raw, fans, event.number) == fans


async def test_a_task_that_fails_becomes_a_dead_letter(another: Open, raw: Redis) -> None:
    """The task becomes a dead letter after five deliveries. The other tasks are done, and the watermark advances."""
    graph = await another(fan_out_task=4, sync_followers=0)
    star, fans = await star_with_fans(graph, raw, 9)
    await raw.delete(f"home:{{{fans[0]}}}")
    await raw.set(f"home:{{{fans[0]}}}", "not a sorted set")
    [event] = await append_events(graph, [PostPublished(star, "hi")])

    assert await graph.worker(timedelta(0)).drain() == event.number

    [letter] = await dead_letters(graph)
    assert letter["post"] == str(event.number)
    assert str(MAX_DELIVERIES) in letter["reason"]
    assert await raw.zcard("{log}:fanouts:open") == 0
    assert set(fans[4:]) <= set(await served(raw, fans[1:], event.number))


async def test_follows_and_unfollows_during_a_fan_out_are_respected(another: Open, raw: Redis) -> None:
    """Between tasks, new followers get the post, and former followers do not."""
    graph, slow = await another(fan_out_task=2), await another(fan_out_task=2)
    star, fans = await star_with_fans(graph, raw, 9)
    [late] = await crowd(graph, 1, "late")
    [event] = await append_events(graph, [PostPublished(star, "hi")])
    stop = Stop(slow.store, runs("insert", f"home:{{{fans[4]}}}"))
    async with background(slow.worker(FOREVER).run()):
        await stop.reached.wait()
        await befriend(graph, late, star)
        await graph.follows.unfollow(fans[4], [star])
        await graph.follows.unfollow(fans[8], [star])
        stop.resume()
        await reached(lambda: graph.log.watermark(), await graph.log.last())

    for viewer in (late, fans[0], fans[7]):
        for _ in range(2):
            assert await home(graph, viewer) == [event.number]
            await graph.timelines.wait_for_rebuilds()
    for viewer in (fans[4], fans[8]):
        assert await home(graph, viewer) == []


async def test_no_command_reads_more_than_a_thousand_followers(another: Open, raw: Redis) -> None:
    graph = await another(sync_followers=2000, fan_out_task=1500)
    assert isinstance(graph.store, HookedStore)
    star, fans = await star_with_fans(graph, raw, 3200)
    asked: list[int] = []

    async def watch(commands: Sequence[Command]) -> None:
        for command in commands:
            if command[0] == "ZRANGE" and str(command[1]).startswith("followers:") and "LIMIT" in command:
                asked.append(int(command[command.index("LIMIT") + 2]))
            elif command[0] == "ZRANGE" and str(command[1]).startswith("followers:"):
                asked.append(int(command[3]) - int(command[2]) + 1)

    graph.store.before.append(watch)
    [post] = await posts(graph, star, "hi")
    assert len(await served(raw, fans, post)) == 2000
    await graph.worker().drain()
    assert await served(raw, fans, post) == fans
    assert asked
    assert max(asked) <= 1000
