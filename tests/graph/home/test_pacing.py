"""Pacing: fan-out by workers pauses while the store answers slowly, and delivers one chunk at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

import pytest
from redis.asyncio import Redis

from graph import Graph
from graph.home.cache import HomeCache
from graph.home.fan_out import FanOut
from graph.home.pacing import LONGEST_PAUSE, PACED_CHUNK, SMALL_CHUNK, Pace, Pacer
from graph.log.events import PostPublished
from graph.model import MAX_NUMBER
from graph.store.commands import Command
from graph.store.store import Store
from graph.worker.consumer import GROUP
from graph.worker.retries import LeasePace
from tests.graph.home.test_fan_out import served, star_with_fans
from tests.graph.worker.unprojected import append
from tests.support.graph_worlds import PATIENCE, Open, people
from tests.support.stores import HookedStore, LostShard

QUICK, SLOW = 0.0002, 0.005


async def test_a_slow_store_makes_the_pause_longer_and_a_quick_one_shorter(graph: Graph) -> None:
    pacer = Pacer(graph.store)
    pacer.note(QUICK)
    assert pacer.pause == 0

    for _ in range(20):
        pacer.note(SLOW)
    longest = pacer.pause
    for _ in range(1000):
        pacer.note(QUICK)

    assert longest == LONGEST_PAUSE
    assert pacer.pause == 0


async def test_a_store_that_was_always_slow_is_not_busy(graph: Graph) -> None:
    pacer = Pacer(graph.store)
    for _ in range(20):
        pacer.note(SLOW)
    assert pacer.pause == 0


async def test_a_delay_of_a_millisecond_is_not_load(graph: Graph) -> None:
    """A delay of 1 ms is not load, even if it is many times the best time."""
    pacer = Pacer(graph.store)
    pacer.note(QUICK / 4)
    for _ in range(20):
        pacer.note(0.001)
    assert pacer.pause == 0


async def test_a_store_that_became_slower_for_good_is_not_busy(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute after the change, older times no longer count."""
    monkeypatch.setattr("graph.home.pacing.WINDOW_SECONDS", 0.0)
    pacer = Pacer(graph.store)
    pacer.note(QUICK)
    for _ in range(20):
        pacer.note(SLOW)
    assert pacer.pause == 0


@pytest.mark.single_server("on a cluster, a script writes the caches of one slot")
async def test_a_script_writes_a_limited_number_of_caches(graph: Graph) -> None:
    """A script must not occupy the store for long."""
    cache = HomeCache(Store(graph.store.url), 800, timedelta(days=7))
    assert [len(group) for group in cache.groups(range(1, 601))] == [250, 250, 100]


async def test_chunks_of_a_worker_take_turns(another: Open, raw: Redis) -> None:
    """Chunks of several posts take turns too, and they are small, so that requests wait only briefly."""
    graph = await another()
    assert isinstance(graph.store, HookedStore)
    star, fans = await star_with_fans(graph, raw, PACED_CHUNK + 50)
    running = most = 0
    sizes: list[int] = []

    async def begin(commands: Sequence[Command]) -> None:
        nonlocal running, most
        viewers = {str(word) for command in commands for word in command if str(word).startswith("home:{")}
        if any(command[0] == "EVALSHA" for command in commands) and len(viewers) > 1:
            running, sizes[len(sizes) :] = running + 1, [len(viewers)]
            most = max(most, running)
            await asyncio.sleep(0.005)
            running -= 1

    graph.store.before.append(begin)
    numbers = await append(graph, *(PostPublished(star, str(n)) for n in range(4)))

    await graph.worker().drain()

    assert (most, max(sizes)) == (1, PACED_CHUNK)
    for number in numbers:
        assert await served(raw, fans, number) == fans


class Recorded(Pace):
    """Notes, before each chunk, its size and the number of followers who have the post already."""

    chunk = 2

    def __init__(self, count: Callable[[], Awaitable[int]]) -> None:
        self.steps: list[tuple[int, int]] = []
        self._count = count

    async def before(self, viewers: Sequence[int]) -> None:
        self.steps.append((len(viewers), await self._count()))


@pytest.mark.parametrize("is_task", [False, True], ids=["at once", "as a task"])
async def test_each_chunk_of_a_fan_out_waits_for_the_pace(graph: Graph, raw: Redis, is_task: bool) -> None:
    star, fans = await star_with_fans(graph, raw, 5)
    [post] = await append(graph, PostPublished(star, "hello"))

    async def count() -> int:
        return len(await served(raw, fans, post))

    pace = Recorded(count)
    if is_task:
        words = ["post", str(post), "author", str(star), "low", "0", "high", str(MAX_NUMBER)]
        await graph.fan_outs.work("1-0", words, GROUP)(pace)
    else:
        await graph.fan_outs.push(FanOut(post, star), pace=pace)

    assert pace.steps == [(2, 0), (2, 2), (1, 4)]
    assert await count() == 5


@pytest.mark.parametrize("seconds", [0.0, 60.0], ids=["refuses", "hangs"])
async def test_a_lost_shard_does_not_stop_other_fan_outs(graph: Graph, another: Open, seconds: float) -> None:
    """A chunk that is never delivered gives up its turn, and the timed read of the lost shard is ignored."""
    partial = await another()
    [alice] = await people(graph, "alice")
    shard = LostShard(partial.store, lambda key: key.startswith("home:"), seconds=seconds)
    pacer = Pacer(partial.store)

    async with asyncio.timeout(PATIENCE):
        for _ in range(3):
            await pacer.wait([alice] * PACED_CHUNK)

    assert pacer.pause == 0
    shard.heal()


async def test_the_pause_depends_on_the_size_of_a_chunk(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """A very small chunk neither pauses nor waits for the previous one, and no other chunk overtakes that one."""
    monkeypatch.setattr("graph.home.pacing.TURN_SECONDS", 2 * PATIENCE)
    monkeypatch.setattr("graph.home.pacing.PACED_CHUNK", 1000 * SMALL_CHUNK)
    pacer = Pacer(graph.store)
    pacer.note = lambda seconds: None  # type: ignore[method-assign]
    pacer.pause = 2 * PATIENCE
    tiny, small = list(range(1, SMALL_CHUNK)), list(range(1, SMALL_CHUNK + 1))

    async with asyncio.timeout(PATIENCE):
        await pacer.wait(tiny)
        await pacer.wait(small)
        await pacer.wait(tiny)
    pacer.done(tiny)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await pacer.wait(small)


def test_workers_use_small_chunks() -> None:
    assert LeasePace.chunk == PACED_CHUNK
