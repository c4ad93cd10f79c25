"""Timelines: `python -m benchmarks.timelines [--quick] [--json FILE] [--plots DIR]`.

Measures reads of home pages by model, by number of followed authors and by depth, the cost of rebuilds and follows, and
the store's memory for caches and follows.
"""

import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.archived import by_archive
from benchmarks.command import Benchmark
from benchmarks.footprint import caches, follows
from benchmarks.latencies import Latencies
from benchmarks.plots import plot_depth, plot_memory, plot_models
from benchmarks.reading import Library, Reader, by_depth, by_model, readers, rebuilds
from benchmarks.report import Table
from benchmarks.stores import forget_log, open_graph, private_store, raw
from benchmarks.worlds import FIRST_LONER, FIRST_POST, PAGE, STEP, Authors, write_users
from graph.paging import Window


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes: authors and their posts, followed authors, depths in posts, reads, and seconds per variant."""

    authors: Authors = field(default=Authors(6_000, 200))
    followed: Sequence[int] = (10, 100, 1_000, 5_000)
    readers_each: int = 4
    depth_followed: int = 1_000
    depths: Sequence[int] = (0, 290, 750, 900, 1_800, 9_000)
    archived: Authors = field(default=Authors(100, 200))
    hot: int = 50
    archive_depths: Sequence[int] = (0, 900, 4_000, 4_990, 6_000, 15_000)
    reads: int = 500
    budget: float = 20.0
    rebuilds: int = 30
    posts: Sequence[int] = (10, 100_000)
    cached: Sequence[int] = (50, 200, 800)
    caches: int = 10_000
    entries: Sequence[int] = (10, 100, 128, 1_000, 5_000, 100_000)


SIZES = {
    "full": Sizes(),
    "quick": Sizes(
        authors=Authors(1_200, 100),
        followed=(10, 100, 1_000),
        readers_each=2,
        depth_followed=100,
        depths=(0, 290, 750, 900, 1_800),
        archived=Authors(20, 200),
        archive_depths=(0, 880, 990, 2_000),
        reads=100,
        budget=2.0,
        rebuilds=10,
        posts=(10, 20_000),
        caches=1_000,
    ),
    "tiny": Sizes(
        authors=Authors(60, 40),
        followed=(10, 50),
        readers_each=1,
        depth_followed=50,
        depths=(0, 300, 900),
        archived=Authors(5, 30),
        hot=10,
        archive_depths=(0, 45, 60),
        reads=5,
        budget=0.5,
        rebuilds=2,
        posts=(10, 500),
        cached=(50, 800),
        caches=20,
        entries=(10, 500),
    ),
}


async def following(library: Library, reader: Reader, posts: Sequence[int], times: int) -> Table:
    """Measure a follow and the next read, for authors with few and with many posts, in turn."""
    graph, rows = library.graph, []
    authors = [
        Authors(1, count, FIRST_LONER + place * STEP, FIRST_POST + (place + 1) * STEP, step=10 * STEP)
        for place, count in enumerate(posts)
    ]
    for author in authors:
        author.build(library.client)
    noted = {author.id(0): (Latencies(), Latencies(), Latencies()) for author in authors}
    write_users(library.client, [reader.id])
    for _, followee in itertools.product(range(times), noted):
        follow, read, unfollow = noted[followee]
        await follow.time(partial(graph.follows.follow, reader.id, [followee]))
        await read.time(lambda: graph.timelines.home(reader.id, Window(PAGE, forward=True)))
        await graph.timelines.wait_for_rebuilds()
        await unfollow.time(partial(graph.follows.unfollow, reader.id, [followee]))
    forget_log(library.client)
    for count, (follow, read, unfollow) in zip(posts, noted.values(), strict=True):
        rows.append([count, times, follow.p50, follow.p99, read.p50, unfollow.p50])
    columns = ("author's posts", "runs", "follow p50 ms", "follow p99 ms", "next read p50 ms", "unfollow p50 ms")
    note = f"The viewer follows {len(reader.followed):,} authors; the next read finds no cache and merges."
    return Table("following", "Following an author with few and with many posts", columns, rows, note)


async def measure(sizes: Sizes) -> AsyncIterator[Table]:
    """Measure everything."""
    with private_store() as url, raw(url) as client:
        graph = await open_graph(url)
        try:
            await graph.binding.check()  # the first write would create the archive
            users = readers(sizes.authors, sizes.followed, sizes.readers_each)
            library = Library(client, graph, sizes.authors, users)
            await library.build()
            yield await by_model(library, sizes.reads, sizes.budget)
            yield await by_depth(library, sizes.depth_followed, sizes.depths, sizes.reads, sizes.budget)
            yield await rebuilds(library, sizes.rebuilds)
            hundred = next(r for r in users if r.model == "push" and len(r.followed) == sizes.followed[1])
            yield await following(library, hundred, sizes.posts, sizes.rebuilds)
        finally:
            await graph.close()
    few = min(2, sizes.readers_each)
    yield await by_archive(sizes.archived, sizes.hot, few, sizes.archive_depths, sizes.reads, sizes.budget)
    yield caches(Authors(100, max(sizes.cached) // 20 + 1), sizes.cached, sizes.caches)
    yield follows(sizes.entries)


def draw(tables: Mapping[str, Table], folder: Path) -> None:
    """Draw the plots."""
    plot_models(tables["models"], folder)
    plot_depth(tables["depth"], folder)
    plot_depth(tables["archive"], folder)
    plot_memory(tables["memory"], folder)


def benchmark() -> Benchmark[Sizes]:
    """Return the command."""
    return Benchmark("Measure reading, rebuilding and memory of timelines.", SIZES, measure, draw)


if __name__ == "__main__":
    benchmark().main()
