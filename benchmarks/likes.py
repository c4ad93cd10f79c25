"""Likes of one post by very many users: `python -m benchmarks.likes [--quick] [--json FILE]`.

Users like and unlike a post, first one after the other, then many at once, while a worker process runs. After each step
the count of the post must be exact. Then the archiver cuts the likes to the hot window.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.command import Benchmark
from benchmarks.footprint import bytes_of
from benchmarks.inserts import watermark
from benchmarks.latencies import Latencies
from benchmarks.report import Cell, Table
from benchmarks.stores import Meter, open_graph, private_store, raw
from benchmarks.workers import workers
from graph import Graph, keys
from graph.visibility.views import SYSTEM

COLUMNS = ("step", "at once", "users", "per second", "p50 ms", "p99 ms", "max ms", "store CPU ms", "likes counted")
NOTE = (
    "Requests of the graph to one post, without HTTP and without rate limits: look-ups, the append to the log and both "
    "sets. A worker process runs, and no archiver. 'Store CPU' is per request, including the work of the worker."
)
MEMORY_COLUMNS = ("likes", "of the post", "of the users", "log", "of the post, cut", "seconds to archive", "counted")
MEMORY_NOTE = (
    "Bytes of the store per like of one post by as many users: `likes:{p}`, `liked:{u}` with one post each, and the "
    "event in the log. Then `likes:{p}` after the archiver has cut it to the newest likes."
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The number of users, and how many requests run at once."""

    users: int
    at_once: int = 64


async def measure(sizes: Sizes) -> AsyncIterator[Table]:
    """Measure likes and unlikes in one store, and the memory of likes in another one."""
    with private_store() as url, raw(url) as client:
        graph = await open_graph(url)
        try:
            with workers(url, 1) as ids:
                [post] = await publish(graph)
                meter, rows = Meter(client, ids), []
                for at_once in (1, sizes.at_once):
                    for step, change, expected in (
                        ("like", graph.likes.like, sizes.users),
                        ("unlike", graph.likes.unlike, 0),
                    ):
                        row = await changed(graph, meter, partial(change, post=post), sizes.users, at_once)
                        rows.append([step, at_once, *row, await counted(graph, post, expected)])
            yield Table("likes", "Likes of one post", COLUMNS, rows, NOTE)
        finally:
            await graph.close()
    yield Table("memory", "Memory of the likes of one post", MEMORY_COLUMNS, [await grown(sizes)], MEMORY_NOTE)


async def publish(graph: Graph) -> list[int]:
    """Publish a post, and return a list that holds only its id."""
    return [(await graph.posts.publish(1, "a post that many users like")).id]


async def changed(
    graph: Graph, meter: Meter, change: Callable[..., Awaitable[int]], users: int, at_once: int
) -> list[Cell]:
    """Make all users like or unlike a post, `at_once` at a time. Return the figures once the worker has caught up."""
    latencies, waiting = Latencies(), itertools.count(2)

    async def client() -> None:
        while (user := next(waiting)) < users + 2:
            await latencies.time(partial(change, user))

    meter.start()
    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(client())
    seconds = time.perf_counter() - started
    await watermark(graph, graph.log.seen)
    spent = meter.stop()
    figures = (latencies.p50, latencies.p99, latencies.worst)
    return [users, users / seconds, *figures, 1000 * spent.store / users]


async def counted(graph: Graph, post: int, expected: int) -> int:
    """Return the number of likes of a post. Raises AssertionError if it differs from `expected`."""
    [found] = await graph.posts.get_many(SYSTEM, [post])
    if found is None or found.likes != expected:
        raise AssertionError(f"the post has {found and found.likes} likes, not {expected}")
    return found.likes


async def grown(sizes: Sizes) -> list[Cell]:
    """Return the memory of likes before and after the archiver has cut them."""
    with private_store() as url, raw(url) as client:
        graph = await open_graph(url)
        try:
            [post] = await publish(graph)
            await graph.worker().drain()
            log = bytes_of(client, keys.LOG)
            waiting = iter(range(2, sizes.users + 2))

            async def like() -> None:
                for user in waiting:
                    await graph.likes.like(user, post)

            await asyncio.gather(*(like() for _ in range(sizes.at_once)))
            await graph.worker().drain()
            of_users = sum(bytes_of(client, keys.liked(user)) for user in range(2, sizes.users + 2))
            sizes_before = (bytes_of(client, keys.likes(post)), of_users, bytes_of(client, keys.LOG) - log)
            started = time.perf_counter()
            while await graph.log.last() > (await graph.archive.state()).watermark:
                await graph.archiver.work()
            seconds = time.perf_counter() - started
            figures = [size / sizes.users for size in (*sizes_before, bytes_of(client, keys.likes(post)))]
            return [sizes.users, *figures, seconds, await counted(graph, post, sizes.users)]
        finally:
            await graph.close()


BENCHMARK = Benchmark(
    "Measure likes of one post by very many users.",
    {"full": Sizes(100_000), "quick": Sizes(5_000), "tiny": Sizes(60, 8)},
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
