"""Rebuild of a lost store: `python -m benchmarks.rebuild [--quick] [--json FILE]`.

Writes generated events into an SQLite archive in bulk, then rebuilds an empty store from the archive. Measures events
per second of both steps, CPU time of this process and of the store, and the peak memory of this process.
"""

import os
import resource
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.command import Benchmark
from benchmarks.report import Cell, Table
from benchmarks.stores import private_store, raw
from graph import Graph
from graph.archive.archive import Archive
from server.seeding.load import WRITING, Source, load
from server.seeding.sources import seed_source

COLUMNS = ("users", "follows", "posts", "events", "step", "seconds", "events/s", "CPU s", "store CPU s", "peak MB")
NOTE = (
    "'write': events into an SQLite archive (synchronous=FULL), including the generation of the data. 'rebuild': from "
    "the archive into an empty store. Generated posts are up to a month old, and popular users post more."
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The generated data of each row: users, average number of follows, and posts."""

    worlds: tuple[tuple[int, int, int], ...]


async def measure(sizes: Sizes) -> AsyncIterator[Table]:
    """Measure each size on its own store and archive."""
    rows: list[list[Cell]] = []
    for users, following, posts in sizes.worlds:
        rows += await rebuild(seed_source(users, posts, following))
    yield Table("rebuild", "Rebuild of a lost store from the archive", COLUMNS, rows, NOTE)


async def rebuild(source: Source) -> list[list[Cell]]:
    """Return a row for each of the two steps."""
    with private_store() as url, raw(url) as client, tempfile.TemporaryDirectory(prefix="fanline-benchmark-") as folder:
        graph = await Graph.open(url, Archive(f"sqlite:///{Path(folder) / 'archive.sqlite'}", timeout=60))
        try:
            written = 0.0
            started = time.monotonic()

            def advance(step: str, done: int, total: int) -> None:
                nonlocal written
                if step == WRITING and done == total:
                    written = time.monotonic() - started

            await load(graph, source, advance)
            client.flushall()
            own, store = cpu_seconds(), store_seconds(client)
            report = await graph.rebuild().run()
            spent = (cpu_seconds() - own, store_seconds(client) - store, peak_megabytes())
        finally:
            await graph.close()
    counts: list[Cell] = [report.users, report.follows, report.posts, report.events]
    return [
        [*counts, "write", written, report.events / written, "", "", ""],
        [*counts, "rebuild", report.seconds, report.events / report.seconds, *spent],
    ]


def cpu_seconds() -> float:
    """Return the CPU time of this process, with its threads."""
    times = os.times()
    return times.user + times.system


def store_seconds(client: object) -> float:
    """Return the CPU time of the store."""
    info = client.info("cpu")  # type: ignore[attr-defined]
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


def peak_megabytes() -> float:
    """Return the peak memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


BENCHMARK = Benchmark(
    "Measure the rebuild of a store from its archive.",
    {
        "full": Sizes(((20_000, 20, 580_000),)),
        "quick": Sizes(((2000, 20, 58_000),)),
        "tiny": Sizes(((100, 5, 400),)),
    },
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
