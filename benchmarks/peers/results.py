"""The figures: medians over rounds, ratios within rounds, tables, and JSON."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeAlias

from benchmarks.peers.clients import Cost
from benchmarks.peers.load import Slice
from benchmarks.peers.measure import Measured
from benchmarks.report import Cell, Table

OURS = "fanline"
BUSY = 0.9  # share of its processor above which a process counts as the limit

Figures: TypeAlias = dict[str, float | None]

NOTE = (
    "Medians over {rounds} rounds of slices that alternate; {connections} connections. The server has a processor of "
    "its own; the store and the load generator share the other. 'CPU ms' is of the server's process with all its "
    "threads. Trips and commands are those of one request without concurrency; commands inside scripts count. "
    "'limit' is what limited the requests per second: the server's processor, the other one, or waiting for one "
    "another or for other programs on the machine."
)
RATIOS_NOTE = (
    "Medians of the ratios within each round. Requests/s and p99: Fanline ÷ the other. CPU: the other ÷ Fanline, "
    "which is how many times less CPU time Fanline takes. Goals for H and L: 20 × the executor off, 3.5 × "
    "mercurius-jit in requests/s, 0.60 of the ceiling, p99 at most 1.5 × the ceiling's."
)


@dataclass(frozen=True, slots=True)
class Row:
    """One variant's figures for one query."""

    variant: str
    query: str
    slices: Sequence[Slice]
    cost: Cost | None

    def of(self, figure: Callable[[Slice], float]) -> float:
        """Return the median of a figure over the rounds."""
        return median(map(figure, self.slices))

    def figures(self) -> Figures:
        """Return the figures for the JSON file."""
        return {
            "rps": self.of(rps),
            "cpu_ms": self.of(cpu_ms),
            "p50_ms": self.of(lambda each: each.p50_ms),
            "p99_ms": self.of(p99),
            "round_trips": self.cost.round_trips if self.cost else None,
            "commands": self.cost.commands if self.cost else None,
            "server_busy": self.of(server_busy),
            "store_busy": self.of(store_busy),
            "load_busy": self.of(load_busy),
        }

    def cells(self) -> list[Cell]:
        """Return the row of the table."""
        figures = [value if value is not None else "" for value in self.figures().values()]
        shares = [f"{100 * float(share):.0f}" for share in figures[6:]]
        return [self.query, self.variant, *figures[:6], *shares, self.limit()]

    def limit(self) -> str:
        """Return what limited the requests: the processor of the `server`, of `store and load`, or `waiting`."""
        if self.of(server_busy) >= BUSY:
            return "server"
        others = self.of(lambda each: store_busy(each) + load_busy(each))
        return "store and load" if others >= BUSY else "waiting"


def rps(each: Slice) -> float:
    """Return requests per second."""
    return each.requests / each.seconds


def cpu_ms(each: Slice) -> float:
    """Return the server's CPU time per request."""
    return 1000 * each.server_cpu / max(1, each.requests)


def p99(each: Slice) -> float:
    """Return the 99th percentile in ms."""
    return each.p99_ms


def server_busy(each: Slice) -> float:
    """Return the server's share of its processor."""
    return each.server_cpu / each.seconds


def store_busy(each: Slice) -> float:
    """Return the store's share of its processor."""
    return each.store_cpu / each.seconds


def load_busy(each: Slice) -> float:
    """Return the load generator's share of its processor."""
    return each.load_cpu / each.seconds


def rows(measured: Measured) -> list[Row]:
    """Return the rows, query by query."""
    queries = dict.fromkeys(query for _, query in measured.slices)
    return [
        Row(variant, query, slices, measured.costs.get((variant, query)))
        for name in queries
        for (variant, query), slices in measured.slices.items()
        if query == name
    ]


def ratio(ours: Row, other: Row, figure: Callable[[Slice], float]) -> float:
    """Return the median over the rounds of Fanline's figure divided by the other variant's figure of the same round."""
    pairs = zip(ours.slices, other.slices, strict=True)
    return median(figure(our) / (figure(their) or float("inf")) for our, their in pairs)


def ratios(found: Sequence[Row]) -> dict[str, dict[str, dict[str, float]]]:
    """Return Fanline's figures divided by those of each other variant, by variant, query and figure."""
    ours = {row.query: row for row in found if row.variant == OURS}
    compared: dict[str, dict[str, dict[str, float]]] = {}
    for row in found:
        if row.variant != OURS and row.query in ours:
            compared.setdefault(row.variant, {})[row.query] = {
                "rps": ratio(ours[row.query], row, rps),
                "cpu_ms": ratio(ours[row.query], row, cpu_ms),
                "p99_ms": ratio(ours[row.query], row, p99),
            }
    return compared


def tables(found: Sequence[Row], connections: int) -> list[Table]:
    """Return the tables: figures, and ratios if Fanline was measured."""
    columns: tuple[str, ...] = (
        "query",
        "variant",
        "requests/s",
        "CPU ms",
        "p50 ms",
        "p99 ms",
        "round trips",
        "commands",
    )
    columns = (*columns, "server %", "store %", "load %", "limit")
    note = NOTE.format(rounds=max((len(row.slices) for row in found), default=0), connections=connections)
    figures = Table("peers", "Requests of each kind, by each variant", columns, [row.cells() for row in found], note)
    compared: list[list[Cell]] = [
        [query, other, each["rps"], 1 / each["cpu_ms"], each["p99_ms"]]
        for other, by_query in ratios(found).items()
        for query, each in by_query.items()
    ]
    if not compared:
        return [figures]
    columns = ("query", "other variant", "requests/s: fanline ÷", "CPU: ÷ fanline", "p99: fanline ÷")
    compared.sort(key=lambda row: [each.query for each in found].index(str(row[0])))
    return [figures, Table("ratios", "Ratios: Fanline and each other variant", columns, compared, RATIOS_NOTE)]


def document(machine: str, measured: Measured, found: Sequence[Row]) -> dict[str, Any]:
    """Return the content of the JSON file."""
    variants: dict[str, dict[str, Figures]] = {}
    for row in found:
        variants.setdefault(row.variant, {})[row.query] = row.figures()
    return {"machine": machine, "variants": variants, "ratios": ratios(found), "skipped": dict(measured.skipped)}


def by_variant(found: Sequence[Row], query: str) -> Mapping[str, Row]:
    """Return the rows of one query."""
    return {row.variant: row for row in found if row.query == query}
