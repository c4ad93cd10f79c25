"""Fan-out: `python -m benchmarks.fanout [--quick] [--json FILE] [--plots DIR]`.

Measures the inserts per second into home caches, the latency of publishing, and the time until all followers see a
post, by number of followers, with the modes push and hybrid.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.command import Benchmark
from benchmarks.inserts import Audience, Fans, inserts_table, measure_all
from benchmarks.plots import plot_inserts, plot_publish, plot_served
from benchmarks.publishing import (
    ALONE,
    BEHIND,
    WORKER,
    merged_rows,
    publish_rows,
    publish_table,
    served_row,
    served_table,
)
from benchmarks.report import Cell, Table
from benchmarks.stores import forget_log, open_graph, private_store, raw
from benchmarks.workers import workers
from benchmarks.worlds import FIRST_LONER, STEP, Authors, Crowd
from server.embedded import Durability


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes: followers of each author in ascending order, runs per author, worker processes, and cached posts."""

    followers: Sequence[int] = (1_000, 10_000, 100_000, 1_000_000)
    runs: Sequence[int] = (9, 5, 3, 1)
    small: Sequence[int] = (0, 10, 100)
    processes: Sequence[int] = (0, 1, 2)
    cached: int = 20
    full: int = 800
    full_followers: int = 10_000
    authors: Authors = field(default=Authors(100, 50))
    publishes: int = 300
    sample: int = 1_000


SIZES = {
    "full": Sizes(),
    "quick": Sizes(
        (1_000, 10_000, 30_000), (3, 2, 1), full_followers=1_000, authors=Authors(50, 60), publishes=60, sample=500
    ),
    "tiny": Sizes(
        (50, 500), (1, 1), (0, 10), (0, 1), full=30, full_followers=50, authors=Authors(20, 5), publishes=5, sample=20
    ),
}


def audiences(sizes: Sequence[int]) -> list[Audience]:
    """Return authors with these numbers of followers: the last one has the whole crowd, the others have parts of it."""
    parts, start = [], 0
    for index, followers in enumerate(sizes):
        last = index == len(sizes) - 1
        parts.append(Audience(FIRST_LONER + index * STEP, 0 if last else start, followers))
        start += followers
    return parts


@asynccontextmanager
async def world(
    authors: Authors, followers: Sequence[int], cached: int, durability: Durability | None = None
) -> AsyncIterator[Fans]:
    """Build and check a crowd in a private store. Every follower has a cache of `cached` posts."""
    with private_store(durability) as url, raw(url) as client:
        graph = await open_graph(url)
        crowd = Crowd(max(followers), cached, authors)
        fans = Fans(url, client, graph, crowd, audiences(followers))
        try:
            fans.build()
            await fans.check()
            yield fans
        finally:
            await graph.close()


async def measure_inserts(sizes: Sizes, fans: Fans) -> list[list[Cell]]:
    """Measure inserts into existing caches."""
    audiences, caches = fans.audiences[len(sizes.small) :], f"{sizes.cached} posts"
    rows = [await measure_all(fans, audiences, processes, sizes.runs, caches) for processes in sizes.processes]
    return [row for some in rows for row in some]


async def measure_others(sizes: Sizes, fans: Fans) -> list[list[Cell]]:
    """Measure inserts into full caches, and posts of authors whose followers have no caches."""
    rows: list[list[Cell]] = []
    async with world(sizes.authors, [sizes.full_followers], sizes.full) as full:
        for processes in (sizes.processes[0], sizes.processes[-1]):
            rows += await measure_all(full, full.audiences, processes, sizes.runs[1:2], f"full: {sizes.full}")
    fans.crowd.hibernate(fans.client)
    return rows + await measure_all(fans, fans.audiences[len(sizes.small) :], 0, sizes.runs, "none")


async def measure_publish(sizes: Sizes, fans: Fans) -> AsyncIterator[Table]:
    """Measure publishing: alone, with a worker process, with push, with hybrid, and with a durable store."""
    few = [audience for audience in fans.audiences if audience.followers <= sizes.followers[0]]
    large = fans.audiences[len(sizes.small) :]
    most = large[-1:]
    rows = await publish_rows(fans.graph, [*few, *most], sizes.publishes, ALONE)
    forget_log(fans.client)
    with workers(fans.url, 1) as ids:
        rows += await publish_rows(fans.graph, few, sizes.publishes, WORKER)
        served = [await served_row(fans, audience, ids, sizes.sample) for audience in large]
        rows += await publish_rows(fans.graph, most, sizes.publishes, BEHIND)
    forget_log(fans.client)
    for processes in sizes.processes[2:]:
        with workers(fans.url, processes) as ids:
            served += [await served_row(fans, audience, ids, sizes.sample) for audience in most]
    forget_log(fans.client)
    published, merged = await merged_rows(fans, large, 0, sizes.publishes)
    forget_log(fans.client)
    async with world(sizes.authors, (*sizes.small, sizes.followers[0]), sizes.cached, Durability.SAFE) as safe:
        with workers(safe.url, 1):
            rows += await publish_rows(safe.graph, safe.audiences, sizes.publishes, WORKER, store="appendfsync always")
    yield publish_table([*rows, *published])
    yield served_table([*served, *merged])


async def measure(sizes: Sizes) -> AsyncIterator[Table]:
    """Measure everything."""
    async with world(sizes.authors, (*sizes.small, *sizes.followers), sizes.cached) as fans:
        rows = await measure_inserts(sizes, fans)
        async for table in measure_publish(sizes, fans):
            yield table
        yield inserts_table([*rows, *await measure_others(sizes, fans)])


def draw(tables: Mapping[str, Table], folder: Path) -> None:
    """Draw the plots."""
    plot_inserts(tables["inserts"], folder)
    plot_publish(tables["publish"], folder)
    plot_served(tables["served"], folder)


def benchmark() -> Benchmark[Sizes]:
    """Return the command."""
    return Benchmark("Measure fan-out and publishing.", SIZES, measure, draw)


if __name__ == "__main__":
    benchmark().main()
