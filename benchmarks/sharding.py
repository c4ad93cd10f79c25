"""One store and a cluster of three primaries: `python -m benchmarks.sharding [--quick] [--json FILE]`.

Measures home pages, publishing and fan-out on both in alternating slices, and how evenly the primaries share the work.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.command import Benchmark
from benchmarks.latencies import Latencies
from benchmarks.report import Cell, Table
from benchmarks.stores import private_store, raw
from graph import Graph
from graph.archive.archive import Archive
from graph.log.events import Followed, PostPublished
from graph.paging import Window
from server.seeding.load import load
from server.seeding.sources import seed_source
from tests.support.cluster import cluster_in
from tests.support.graph_worlds import append_events

ONE, THREE = "one store", "three primaries"
COLUMNS = ("work", "store", "operations/s", "p50 ms", "p99 ms", "process CPU ms", "÷ one store")
NOTE = (
    "Medians of alternating slices. Pages of 30 posts by concurrent readers; posts by concurrent authors with a few "
    "followers each; fan-out by a worker into the home caches of one author's followers. All processes share the cores "
    "of this machine, so three primaries can only be faster where one store's thread was the limit."
)
NODE_COLUMNS = ("work", *(f"primary {n} %" for n in (1, 2, 3)), "largest difference from a third %")
NODE_NOTE = "The share of each primary in the commands of all three. The replicas apply the same writes again."
TEXT = "A post about the market, as long as most posts are."
SLICES = 3


@dataclass(frozen=True, slots=True)
class Sizes:
    """Users and posts of the world, concurrent clients, seconds per slice, and posts per fan-out slice."""

    users: int
    posts: int
    clients: int
    seconds: float
    fan_outs: int


@dataclass(frozen=True, slots=True)
class Side:
    """A graph on one of the stores, with its users and clients of its primaries."""

    name: str
    graph: Graph
    users: Sequence[int]
    primaries: Sequence[Any]

    def commands(self) -> list[int]:
        """Return the number of commands that each primary has processed."""
        return [int(client.info("stats")["total_commands_processed"]) for client in self.primaries]


@dataclass(frozen=True, slots=True)
class Slice:
    """The operations per second of a slice, their latencies, and the CPU time of this process per operation, in ms."""

    rate: float
    latencies: Latencies
    cpu_ms: float


async def measure(sizes: Sizes) -> AsyncIterator[Table]:
    """Measure each kind of work on both stores."""
    works: dict[str, Callable[[Side, Sizes], Awaitable[Slice]]] = {
        "home pages": read_pages,
        "publishing": publish,
        "fan-out": fan_out,
    }
    rows: list[list[Cell]] = []
    shares: list[list[Cell]] = []
    async with both(sizes) as sides:
        for work, run in works.items():
            slices: dict[str, list[Slice]] = {side.name: [] for side in sides}
            before = sides[-1].commands()
            for turn in range(SLICES):
                for side in sides if turn % 2 else reversed(sides):
                    slices[side.name].append(await run(side, sizes))
            counts = [after - start for after, start in zip(sides[-1].commands(), before, strict=True)]
            base = median(slices[ONE]).rate
            for side in sides:
                one = median(slices[side.name])
                noted = one.latencies
                rows.append([work, side.name, one.rate, noted.p50, noted.p99, one.cpu_ms, one.rate / base])
            percent = [100 * count / sum(counts) for count in counts]
            shares.append([work, *percent, max(abs(3 * share - 100) for share in percent)])
    yield Table("sharding", "One store and three primaries", COLUMNS, rows, NOTE)
    yield Table("nodes", "Commands of each primary", NODE_COLUMNS, shares, NODE_NOTE)


@asynccontextmanager
async def both(sizes: Sizes) -> AsyncIterator[list[Side]]:
    """Build the same world on one store and on a cluster."""
    with tempfile.TemporaryDirectory(prefix="fanline-benchmark-") as name, private_store() as url:
        folder = Path(name)
        with cluster_in(folder / "cluster") as cluster, raw(url) as client, ExitStack() as clients:
            primaries = [clients.enter_context(node.client()) for node in cluster.primaries]
            async with (
                world(ONE, url, folder / "one.sqlite", [client], sizes) as one,
                world(THREE, cluster.url, folder / "three.sqlite", primaries, sizes) as three,
            ):
                yield [one, three]


@asynccontextmanager
async def world(name: str, url: str, archive: Path, primaries: Sequence[Any], sizes: Sizes) -> AsyncIterator[Side]:
    """Build a world: generated users with home caches, who all follow the last user.

    The last user has few posts; otherwise all pages would show the same posts.
    """
    graph = await Graph.open(url, Archive(f"sqlite:///{archive}"))
    try:
        await load(graph, seed_source(sizes.users, sizes.posts, 20), lambda *_: None)
        logins = [f"p{n}" for n in range(sizes.users)]
        users = [user for user in await graph.users.ids_of_logins(logins) if user is not None]
        await append_events(graph, [Followed(user, users[-1]) for user in users[:-1]])
        await graph.worker().drain()
        for user in users:
            await graph.timelines.home(user, Window(30, forward=True))
        await graph.timelines.wait_for_rebuilds()
        yield Side(name, graph, users, primaries)
    finally:
        await graph.close()


async def read_pages(side: Side, sizes: Sizes) -> Slice:
    """Read home pages with concurrent readers."""
    return await concurrently(
        sizes, lambda n: side.graph.timelines.home(side.users[n % len(side.users)], Window(30, forward=True))
    )


async def publish(side: Side, sizes: Sizes) -> Slice:
    """Publish with concurrent authors from the second half of the users, who have few followers."""
    authors = side.users[len(side.users) // 2 : -1]
    done = await concurrently(sizes, lambda n: side.graph.posts.publish(authors[n % len(authors)], TEXT))
    await side.graph.worker().drain()
    return done


async def fan_out(side: Side, sizes: Sizes) -> Slice:
    """Push posts of the author whom all users follow. An operation is one insertion into a home cache."""
    noted = Latencies()
    started, cpu = time.monotonic(), time.process_time()
    for _ in range(sizes.fan_outs):
        await append_events(side.graph, [PostPublished(side.users[-1], TEXT)])
        await noted.time(side.graph.worker().drain)
    inserts = sizes.fan_outs * (len(side.users) - 1)
    return Slice(inserts / (time.monotonic() - started), noted, 1000 * (time.process_time() - cpu) / inserts)


async def concurrently(sizes: Sizes, work: Callable[[int], Awaitable[Any]]) -> Slice:
    """Repeat some work with concurrent clients for the duration of a slice."""
    noted = Latencies()
    started, cpu = time.monotonic(), time.process_time()

    async def client(first: int) -> None:
        n = first
        while time.monotonic() - started < sizes.seconds:
            await noted.time(partial(work, n))
            n += sizes.clients

    await asyncio.gather(*(client(n) for n in range(sizes.clients)))
    spent = time.process_time() - cpu
    return Slice(noted.count / (time.monotonic() - started), noted, 1000 * spent / noted.count)


def median(slices: Sequence[Slice]) -> Slice:
    """Return the slice with the median rate."""
    return sorted(slices, key=lambda one: one.rate)[len(slices) // 2]


BENCHMARK = Benchmark(
    "Compare one store with three primaries.",
    {
        "full": Sizes(4000, 20_000, 32, 3.0, 10),
        "quick": Sizes(500, 3000, 16, 2.0, 5),
        "tiny": Sizes(60, 200, 4, 0.2, 1),
    },
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
