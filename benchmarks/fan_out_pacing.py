"""Pacing of fan-out: `python -m benchmarks.fan_out_pacing [--quick] [--json FILE] [--plots DIR]`.

Reads home timelines while one author with many followers publishes several posts a second, faster than a single worker
can fan them out. Measures the latency of the pages and the lag of the worker over time, with and without pacing.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.command import Benchmark
from benchmarks.fanout import world
from benchmarks.inserts import Fans
from benchmarks.latencies import Latencies
from benchmarks.plots import by, plot
from benchmarks.report import Cell, Table
from benchmarks.stores import forget_log
from benchmarks.workers import workers
from benchmarks.worlds import PAGE, Authors
from graph.log.backlog import read_backlog
from graph.log.events import PostPublished
from graph.paging import Window
from tests.support.graph_worlds import append_events

PAUSE_SECONDS = 0.004
NORMAL, UNPACED, PACED = "no fan-out", "without pacing", "with pacing"
GOAL = 3.0


@dataclass(frozen=True, slots=True)
class Sizes:
    """Followers of the author, posts per second, and seconds of each phase."""

    followers: int = 9_000
    posts_per_second: int = 8
    seconds: int = 20
    authors: Authors = field(default=Authors(100, 50))


SIZES = {"full": Sizes(), "quick": Sizes(seconds=8), "tiny": Sizes(50, 4, 2, Authors(20, 5))}


@dataclass(slots=True)
class Phase:
    """The latencies of pages and the lag of the worker in each second of a phase."""

    name: str
    seconds: list[Latencies] = field(default_factory=list)
    lags: list[float] = field(default_factory=list)

    @property
    def total(self) -> Latencies:
        """The latencies of the whole phase."""
        return Latencies([duration for second in self.seconds for duration in second.durations])


async def read(fans: Fans, phase: Phase, seconds: int) -> None:
    """Read pages of random viewers, about 200 a second."""
    rng, began = random.Random(1), time.monotonic()
    for second in range(seconds):
        latencies = Latencies()
        while not latencies.count or time.monotonic() < began + second + 1:
            viewer = fans.crowd.viewer(rng.randrange(fans.crowd.viewers))
            await latencies.time(partial(fans.graph.timelines.home, viewer, Window(PAGE, forward=True)))
            await asyncio.sleep(PAUSE_SECONDS)
        phase.seconds.append(latencies)
        phase.lags.append((await read_backlog(fans.graph.store)).unprojected_seconds)


async def publish(fans: Fans, posts_per_second: int) -> None:
    """Append posts, which only the worker projects, until cancelled."""
    author = fans.audiences[0].author
    while True:
        await append_events(fans.graph, [PostPublished(author, "a post for everybody")])
        await asyncio.sleep(1 / posts_per_second)


async def run_phase(fans: Fans, name: str, sizes: Sizes) -> Phase:
    """Measure one phase."""
    phase = Phase(name)
    if name == NORMAL:
        await read(fans, phase, sizes.seconds)
        return phase
    with workers(fans.url, 1, paced=name == PACED):
        publishing = asyncio.create_task(publish(fans, sizes.posts_per_second))
        try:
            await read(fans, phase, sizes.seconds)
        finally:
            publishing.cancel()
            with suppress(asyncio.CancelledError):
                await publishing
    forget_log(fans.client)
    return phase


async def measure(sizes: Sizes) -> AsyncIterator[Table]:
    """Measure the phases one after the other."""
    async with world(sizes.authors, [sizes.followers], 20) as fans:
        phases = [await run_phase(fans, name, sizes) for name in (NORMAL, UNPACED, PACED)]
    normal = phases[0].total.p99
    rows: list[list[Cell]] = [
        [
            phase.name,
            phase.total.count,
            phase.total.p50,
            phase.total.p99,
            phase.total.p99 / normal,
            phase.total.worst,
            phase.lags[-1],
        ]
        for phase in phases
    ]
    columns = ("fan-out", "pages", "p50 ms", "p99 ms", "× normal", "worst ms", "lag s at the end")
    load = f"{sizes.posts_per_second} posts a second to {sizes.followers:,} followers, {sizes.seconds} s each"
    yield Table("pacing", "Home pages beside a large fan-out", columns, rows, f"{load}. Goal: p99 ≤ 3 × normal.")
    seconds: list[list[Cell]] = [
        [phase.name, second + 1, latencies.p50, latencies.p99, phase.lags[second]]
        for phase in phases
        for second, latencies in enumerate(phase.seconds)
    ]
    yield Table("pacing over time", "The same over time", ("fan-out", "second", "p50 ms", "p99 ms", "lag s"), seconds)


def draw(tables: Mapping[str, Table], folder: Path) -> None:
    """Draw the p99 of pages, and the lag of the worker, over time."""
    table = tables["pacing over time"]
    goal = GOAL * float(tables["pacing"].column("p99 ms")[0])
    title = "Home pages beside a large fan-out"
    lines = by(table, "fan-out", "second", "p99 ms")
    plot(folder / "pacing.svg", title, ("seconds", "p99, ms"), lines, ("goal: 3 × normal", goal), linear=True)
    lags = by(table, "fan-out", "second", "lag s")
    plot(folder / "pacing-lag.svg", "Lag of the worker", ("seconds", "seconds"), lags, linear=True)


def benchmark() -> Benchmark[Sizes]:
    """Return the command."""
    return Benchmark("Measure the pacing of fan-out.", SIZES, measure, draw)


if __name__ == "__main__":
    benchmark().main()
