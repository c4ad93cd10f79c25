"""Calibration of the prices of fields: `python -m benchmarks.calibration [--quick] [--json FILE]`. On Linux.

For each query, compares a request for n units of one thing with a request for 2n units. It reports the differences in
the CPU time of the server, the store and the database together, and in points, including those charged afterwards. The
fixed cost of a request cancels out. The last column is the query's points per millisecond, divided by those of a page
of a home timeline: 1 is fair; above 1, the query costs the server less than its price.
"""

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks.calibrated_queries import Calibrated, queries
from benchmarks.calibration_world import World, seed
from benchmarks.command import Benchmark
from benchmarks.databases import SQLITE, databases
from benchmarks.report import Cell, Table
from benchmarks.stores import private_store, raw
from graph import Graph, Tuning
from graph.archive.archive import Archive
from tests.attacks.victim import Victim, cpu_of
from tests.attacks.world import World as Attacked

HOME = "home page of 30"
COLUMNS = (
    "query",
    "per additional",
    "points",
    "late points",
    "CPU ms",
    "store commands",
    "SQL statements",
    "points/ms",
    "to home",
)
NOTE = (
    "The cost of each additional unit. Points include late points, which are charged after the execution. "
    "Points per ms of CPU of server, store and database together."
)
LEAST_MS = 0.0002
EMPTY = "{ __typename }"
JSON = {"content-type": "application/json"}
SETTINGS = {
    "FANLINE_EXPLAIN": "true",
    "FANLINE_WORKER": "false",
    "FANLINE_DEADLINE": "60s",
    "FANLINE_MAX_COST": "1000000",
    "FANLINE_MAX_RESPONSE": "100000000",
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """The databases, the rounds per query, and the scale of the world."""

    databases: Sequence[str]
    rounds: int
    scale: float


SIZES = {
    "full": Sizes((SQLITE, "PostgreSQL", "MariaDB"), 15, 1.0),
    "quick": Sizes((SQLITE,), 7, 1.0),
    "tiny": Sizes((SQLITE,), 1, 0.02),
}


@dataclass(frozen=True, slots=True)
class Spent:
    """The CPU seconds of one request, its points and those charged afterwards, its commands and statements."""

    cpu: float
    points: float = 0
    late: float = 0
    commands: float = 0
    statements: float = 0


class Stage:
    """A server, its store and its database, whose CPU time is measured. `urls` are those of the store and database."""

    def __init__(self, victim: Victim, world: World, store: int, urls: tuple[str, str]) -> None:
        self.world = world
        self.victim = victim
        self.urls = urls
        self._store = store
        self._clients = {True: victim.client(), False: victim.client(world.token)}

    def cpu(self) -> float:
        """Return the CPU seconds that the server, the store and all descendants of this process have used."""
        measured = {self.victim.pid, self._store, *descendants(os.getpid())}
        return sum(map(cpu_of, measured))

    def time(self, query: Calibrated, n: int) -> float:
        """Return the CPU seconds of one request."""
        before = self.cpu()
        self._send(query, n)
        return self.cpu() - before

    def explain(self, query: Calibrated, n: int) -> Spent:
        """Return what a request costs in points, commands and statements."""
        explained = self._send(query, n, explain=True)["extensions"]["explain"]
        return Spent(
            0.0,
            explained["cost"]["points"] + explained["cost"].get("late", 0),
            explained["cost"].get("late", 0),
            explained["store"]["commands"],
            explained["archive"]["queries"],
        )

    def accepts(self, query: Calibrated, n: int) -> bool:
        """Return True if a request is executed, even if its budget is too small for some pages."""
        answer = self._post(query, n).json()
        return bool(answer.get("data")) and not unexpected(answer)

    def size(self, query: Calibrated, n: int) -> int:
        """Return the size of a response in bytes."""
        return len(self._post(query, n).content)

    def _send(self, query: Calibrated, n: int, *, explain: bool = False) -> dict[str, Any]:
        answer: dict[str, Any] = self._post(query, n, explain=explain).json()
        if unexpected(answer):
            raise RuntimeError(f"{query.write(n)[:200]}: {json.dumps(answer['errors'])[:300]}")
        return answer

    def _post(self, query: Calibrated, n: int, *, explain: bool = False) -> httpx.Response:
        body: dict[str, object] = {"query": query.write(n) if n else EMPTY}
        if explain:
            body["extensions"] = {"explain": True}
        return self._clients[query.anonymous].post("/graphql", content=json.dumps(body), headers=JSON)

    def measure(self, query: Calibrated, rounds: int) -> Spent:
        """Return the cost of one more unit: the difference between the two requests, divided by n.

        The CPU time of a request is the lowest of several measurements, because other processes only add to it.
        """
        times: dict[int, list[float]] = {n: [] for n in query.sizes}
        for _ in range(rounds + 1):
            for n in query.sizes:
                times[n].append(self.time(query, n))
        small, large = (min(times[n][1:]) for n in query.sizes)
        before, after = (self.explain(query, n) for n in query.sizes)
        n = query.n
        return Spent(
            (large - small) / n,
            (after.points - before.points) / n,
            (after.late - before.late) / n,
            (after.commands - before.commands) / n,
            (after.statements - before.statements) / n,
        )

    def close(self) -> None:
        """Close the connections."""
        for client in self._clients.values():
            client.close()


def unexpected(answer: Mapping[str, Any]) -> bool:
    """Return True if a response has errors other than those of pages that exceed the budget."""
    return any(error["extensions"]["code"] != "COST_LIMIT" for error in answer.get("errors", ()))


async def measure(sizes: Sizes) -> AsyncIterator[Table]:
    """Yield a table for each database."""
    for database in sizes.databases:
        table = await asyncio.to_thread(table_of, database, sizes)
        if table is not None:
            yield table


def table_of(name: str, sizes: Sizes) -> Table | None:
    """Return the table of one database; None if the database is not installed."""
    with stage(name, sizes.scale, SETTINGS) as opened:
        if opened is None:
            return None
        written = queries(opened.world)
        rounds = dict.fromkeys(written, sizes.rounds) | {HOME: 3 * sizes.rounds}
        found = {label: opened.measure(query, rounds[label]) for label, query in written.items()}
    home = rate_of(found[HOME])
    rows = [row(label, written[label], spent, home) for label, spent in found.items()]
    return Table(f"calibration-{name.lower()}", f"Points and CPU time, {name}", COLUMNS, rows, NOTE)


@contextmanager
def stage(name: str, scale: float, settings: Mapping[str, str]) -> Iterator[Stage | None]:
    """Run a server with the world on one database; yield None if the database is not installed."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fanline-calibration-")))
        store = stack.enter_context(private_store())
        made = stack.enter_context(databases([name]))
        if name not in made:
            yield None
            return
        archive = made[name]()
        world = asyncio.run(fill(store, archive, scale))
        all_settings = {**settings, "FANLINE_ARCHIVE_URL": archive}
        victim = stack.enter_context(Victim(folder / "server", store, attacked(world), settings=all_settings))
        with raw(store) as client:
            store_pid = int(client.info("server")["process_id"])
        opened = Stage(victim, world, store_pid, (store, archive))
        stack.callback(opened.close)
        yield opened


def attacked(world: World) -> Attacked:
    """Return the world as the server process expects it."""
    return Attacked(tuple(world.crowd), world.viewer, "", (), {"viewer": world.token}, ("viewer",))


async def fill(store: str, archive: str, scale: float, tokens: int = 0) -> World:
    """Fill a store and its archive with the world. `tokens` is the number of other users with a token."""
    graph = await Graph.open(store, Archive(archive), Tuning(argon2_time_cost=1, argon2_memory_kib=8))
    try:
        return await seed(graph, scale=scale, tokens=tokens)
    finally:
        await graph.close()


def descendants(process: int) -> list[int]:
    """Return the ids of the running descendants of a process."""
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text("ascii").split()
    except FileNotFoundError:  # the process has ended
        return []
    found = list(map(int, children))
    return found + [each for child in found for each in descendants(child)]


def row(label: str, query: Calibrated, spent: Spent, home: float) -> list[Cell]:
    """Return the row of a query."""
    rate = rate_of(spent)
    return [
        label,
        query.unit,
        round(spent.points, 1),
        round(spent.late, 1),
        1000 * spent.cpu,
        round(spent.commands, 1),
        round(spent.statements, 1),
        round(rate),
        rate / home,
    ]


def rate_of(spent: Spent) -> float:
    """Return the points per millisecond."""
    return spent.points / max(LEAST_MS, 1000 * spent.cpu)


def benchmark() -> Benchmark[Sizes]:
    """Return the command."""
    return Benchmark("Calibrate the prices of fields.", SIZES, measure)


if __name__ == "__main__":
    benchmark().main()
