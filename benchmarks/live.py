"""Live subscriptions: `python -m benchmarks.live [--quick] [--json FILE] [--plots DIR]`. On Linux.

Measures the latency and CPU time of deliveries, the memory of idle sockets, the speed of matching events with filters,
the effect of stalled readers on others, and the memory that closed sockets leave behind.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.command import Benchmark
from benchmarks.live_footprint import churn, idle
from benchmarks.live_latency import Crowds, by_sockets
from benchmarks.live_matching import Audition, by_filters
from benchmarks.live_readers import Readers, by_stalled
from benchmarks.live_stage import stage
from benchmarks.plots import Lines, plot
from benchmarks.report import Table


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes. `idle`: sockets and seconds. `churn`: rounds, connections per round, and concurrent connections."""

    audition: Audition
    idle: tuple[int, float]
    crowds: Crowds
    readers: Readers
    churn: tuple[int, int, int]


SIZES = {
    "full": Sizes(
        Audition((100, 1_000, 10_000, 100_000), 20_000, 20_000, 5.0),
        (10_000, 45.0),
        Crowds((100, 1_000, 5_000), 500, 15_000),
        Readers(100, 10, 5, 200, 10),
        (3, 10_000, 100),
    ),
    "quick": Sizes(
        Audition((100, 1_000, 10_000), 2_000, 20_000, 0.5),
        (500, 3.0),
        Crowds((50, 200), 500, 1_500, 50),
        Readers(20, 2, 1, 160, 40),
        (3, 300, 50),
    ),
    "tiny": Sizes(
        Audition((50, 500), 200, 300, 0.1),
        (30, 0.5),
        Crowds((10, 20), 200, 100, 10),
        Readers(5, 1, 1, 160, 80),
        (2, 24, 8),
    ),
}


async def measure(sizes: Sizes) -> AsyncIterator[Table]:
    """Measure everything."""
    yield by_filters(sizes.audition)
    sockets, seconds = sizes.idle
    async with stage(sockets, [(0, sockets)]) as there:
        yield await idle(there, seconds)
    audiences = [*sizes.crowds.audiences(), (0, sizes.readers.sockets)]
    async with stage(max(*sizes.crowds.sockets, sizes.readers.sockets), audiences) as there:
        yield await by_sockets(there, sizes.crowds)
        yield await by_stalled(there, sizes.readers)
    rounds, connects, at_once = sizes.churn
    async with stage(connects, [(0, connects)]) as there:
        yield await churn(there, rounds, connects, at_once)


def draw(tables: Mapping[str, Table], folder: Path) -> None:
    """Draw the plots."""
    draw_matching(tables["matching"], folder)
    draw_latency(tables["latency"], folder)
    draw_readers(tables["readers"], folder)


def draw_matching(table: Table, folder: Path) -> None:
    """Draw events per second, by number of filters."""
    filters = table.column("filters")
    lines: Lines = {name: (filters, table.column(f"{name} events/s")) for name in ("index", "loop")}
    axes = ("filters", "events per second")
    plot(folder / "live-matching.svg", table.title, axes, lines, ("goal with 10,000: 20,000/s", 20_000.0))


def draw_latency(table: Table, folder: Path) -> None:
    """Draw the latency of a delivery, by number of sockets, for posts to all sockets and to some of them."""
    all_told = [row for row in table.rows if row[0] == row[1]]
    some = [row for row in table.rows if row[1] == min(float(told) for told in table.column("receivers per post"))]
    lines: Lines = {
        f"{rank}, {name} receive": (part.column("sockets"), part.column(f"{rank} ms"))
        for name, rows in (("all", all_told), (f"{some[0][1]}", some))
        for part in [Table(table.key, table.title, table.columns, rows)]
        for rank in ("p50", "p99")
    }
    plot(folder / "live-latency.svg", table.title, ("sockets", "ms"), lines)


def draw_readers(table: Table, folder: Path) -> None:
    """Draw p99 of the steady readers per round, with and without stalled readers."""
    rounds = Table(table.key, table.title, table.columns, [row for row in table.rows if row[0] != "median"])
    lines: Lines = {
        f"{stalled} stalled": (some.column("round"), some.column("others' p99 ms"))
        for stalled in sorted({int(cell) for cell in rounds.column("stalled")})
        for some in [rounds.where(stalled=stalled)]
    }
    plot(folder / "live-readers.svg", table.title, ("round", "p99 of the others, ms"), lines, linear=True)


def benchmark() -> Benchmark[Sizes]:
    """Return the command."""
    return Benchmark("Measure the live feed.", SIZES, measure, draw)


if __name__ == "__main__":
    benchmark().main()
