"""The most expensive accepted requests: `python -m benchmarks.most_expensive [--quick] [--json FILE]`. On Linux.

Sends each query of the calibration in the largest size that the production limits accept. Measures the CPU time of the
server, the store and the database together, and the size of the response; then the same for the largest events of
subscriptions. `python -m tests.attacks.search` also searches among generated documents.
"""

import asyncio
from collections.abc import AsyncIterator

from benchmarks.calibrated_queries import Calibrated, queries
from benchmarks.calibration import SETTINGS, Sizes, Stage, stage
from benchmarks.command import Benchmark
from benchmarks.databases import SQLITE
from benchmarks.expensive_events import events_table
from benchmarks.report import Cell, Table

COLUMNS = ("query", "per additional", "n", "CPU ms", "points", "late points", "kB")
NOTE = "The most expensive first. Goals: 100 ms of CPU, 5 MB."
SIZES = {
    "full": Sizes((SQLITE, "PostgreSQL"), 5, 1.0),
    "quick": Sizes((SQLITE,), 3, 1.0),
    "tiny": Sizes((SQLITE,), 1, 0.02),
}
MOST = 512
UNLIMITED = {"FANLINE_MAX_COST", "FANLINE_MAX_RESPONSE"}


async def measure(sizes: Sizes) -> AsyncIterator[Table]:
    """Yield a table for each database."""
    for database in sizes.databases:
        for table in await asyncio.to_thread(tables_of, database, sizes):
            yield table


def tables_of(name: str, sizes: Sizes) -> list[Table]:
    """Return the tables of requests and of events of one database; none if the database is not installed."""
    settings = {key: value for key, value in SETTINGS.items() if key not in UNLIMITED}
    with stage(name, sizes.scale, settings) as opened:
        if opened is None:
            return []
        rows = [row(opened, label, query, sizes.rounds) for label, query in queries(opened.world).items()]
        events = events_table(name, opened)
    rows.sort(key=lambda cells: -float(cells[3]))
    key, title = f"most-expensive-{name.lower()}", f"The largest accepted requests, {name}"
    return [Table(key, title, COLUMNS, rows, NOTE), events]


def row(opened: Stage, label: str, query: Calibrated, rounds: int) -> list[Cell]:
    """Return the row of a query at its largest accepted size."""
    n = largest(opened, query)
    cpu = min(opened.time(query, n) for _ in range(rounds))
    spent = opened.explain(query, n)
    return [label, query.unit, n, 1000 * cpu, round(spent.points), round(spent.late), opened.size(query, n) / 1000]


def largest(opened: Stage, query: Calibrated) -> int:
    """Return the largest size of a query that the server accepts, found by bisection."""
    low, high = 1, 2
    while high <= MOST and opened.accepts(query, high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if opened.accepts(query, middle) else (low, middle)
    return low


def benchmark() -> Benchmark[Sizes]:
    """Return the command."""
    return Benchmark("Measure the most expensive accepted requests.", SIZES, measure)


if __name__ == "__main__":
    benchmark().main()
