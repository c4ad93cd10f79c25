"""Overload: `python -m benchmarks.overload [--quick] [--json FILE] [--plots DIR]`. On Linux with two processors.

Clients send requests at a rate that does not depend on the responses, to a server that limits its running operations
and to one that does not, in turn. The servers have one processor; the store, the worker and the clients share the
other.
"""

import json
import math
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.command import Benchmark
from benchmarks.overload_clients import TIMEOUT_SECONDS, Outcomes, Schedule
from benchmarks.peers.load import Job, cpu_seconds, percentile
from benchmarks.peers.processes import (
    Generator,
    Processors,
    Server,
    child,
    generator,
    input_,
    on,
    output,
    server,
    worker,
)
from benchmarks.peers.queries import mixed, reads
from benchmarks.peers.world import KEY, Reading, Size, seed
from benchmarks.plots import plot_overload
from benchmarks.report import Cell, Table
from benchmarks.stores import private_store, raw

WITH, WITHOUT = "with the limit", "without"
VARIANTS = {WITH: "fanline-limited", WITHOUT: "fanline"}
NORMAL, OVERLOAD = 0.7, 2.0
BIN_SECONDS = 0.5
PATIENCE_SECONDS = 1.0  # after which an answer is of no use
IDLE_SECONDS = 0.2
COLUMNS = (
    "server",
    "load %",
    "capacity/s",
    "offered/s",
    "goodput/s",
    "goodput ÷ capacity",
    "p50 ms",
    "p99 ms",
    "p99 ÷ normal",
    "refused/s",
    "refused p50 ms",
    "refused p99 ms",
    "timed out %",
)
NOTE = (
    "Capacity: the requests per second without the limit if each of 32 connections always has a request in flight; the "
    "higher of two measurements, before and after each row. Load: requests sent per second, as a percentage of the "
    "capacity. Nine of ten requests read a home timeline, one publishes. "
    f"Goodput: answers within {PATIENCE_SECONDS:g} second. "
    "Latencies count from the time at which a request was due. p99 ÷ normal: of the answered requests, compared with "
    f"{NORMAL:.0%} load just before. Requests without a response after {TIMEOUT_SECONDS:g} seconds have timed out."
)
LINES = ("server", "seconds", "goodput ÷ capacity", "refused or timed out ÷ capacity", "p99 ms")
TIMES = f"Load of {NORMAL:.0%}, then {OVERLOAD:.0%}, then {NORMAL:.0%}, in steps of {BIN_SECONDS:g} seconds."


@dataclass(frozen=True, slots=True)
class Plan:
    """The loads, the seconds of each, and the seconds of normal load and overload that are measured over time."""

    loads: Sequence[float]
    seconds: float
    calm: float
    overload: float
    size: Size = field(default_factory=Size)


TINY = Size(users=150, readers=4, writers=4, posts_each=10, reader_follows=60, famous_followers=60)
SIZES = {
    "full": Plan((0.9, 1.1, 1.5, OVERLOAD, 3.0), 2.0, 2.0, 10.0),
    "quick": Plan((1.2, OVERLOAD), 2.0, 1.0, 3.0),
    "tiny": Plan((1.2, OVERLOAD), 0.2, 0.2, 0.6, TINY),
}


@dataclass(frozen=True, slots=True)
class Stage:
    """The servers by variant, the requests of each connection, and the processes of the clients."""

    servers: Mapping[str, Server]
    requests: Sequence[Sequence[str]]
    closed: Generator
    clients: "subprocess.Popen[str]"
    store_process: int

    def capacity(self, warm_up: float, seconds: float) -> float:
        """Return the requests per second without the limit if each connection always has a request in flight."""
        running = self.servers[WITHOUT]
        job = Job(running.port, self.requests, warm_up, seconds, running.process, self.store_process)
        measured = self.closed.run(job)
        return measured.requests / measured.seconds

    def send(self, variant: str, *rates: tuple[float, float]) -> Outcomes:
        """Send requests to a server at these rates, each for some seconds, and return the outcomes."""
        requests = [request for each in zip(*self.requests, strict=True) for request in each]
        schedule = Schedule(self.servers[variant].port, requests, rates)
        input_(self.clients).write(json.dumps(asdict(schedule)) + "\n")
        input_(self.clients).flush()
        outcomes = Outcomes(**json.loads(output(self.clients).readline()))
        self._wait_until_idle(self.servers[variant].process)
        return outcomes

    def _wait_until_idle(self, process: int) -> None:
        """Wait until a server has finished the requests whose clients have timed out."""
        used = cpu_seconds(process)
        while True:
            time.sleep(IDLE_SECONDS)
            before, used = used, cpu_seconds(process)
            if used - before < IDLE_SECONDS / 10:
                return


@asynccontextmanager
async def stage(size: Size) -> AsyncIterator[Stage]:
    """Seed a store, and run the servers, a worker and the clients for the duration of the block."""
    processors = Processors.available()
    with on(processors.others), private_store() as url, raw(url) as store, ExitStack() as stack:
        world = await seed(url, size, KEY)
        servers = {name: stack.enter_context(server(variant, url, processors)) for name, variant in VARIANTS.items()}
        stack.enter_context(worker(url, processors))
        clients = stack.enter_context(child([sys.executable, "-m", "benchmarks.overload_clients"], processors.others))
        process = int(store.info("server")["process_id"])
        yield Stage(servers, requests_of(world), stack.enter_context(generator(processors)), clients, process)


def requests_of(world: Reading) -> list[list[str]]:
    """Return the requests of each reader."""
    home = reads(world.famous)["H"]
    pairs = zip(world.readers, world.writers, strict=True)
    return [mixed(home, reader, writer, place) for place, (reader, writer) in enumerate(pairs)]


async def measure(plan: Plan) -> AsyncIterator[Table]:
    """Measure both servers at each load, then over time."""
    async with stage(plan.size) as running:
        running.capacity(plan.seconds, plan.seconds)
        for name in VARIANTS:
            running.send(name, (100.0, plan.seconds))  # fills the caches
        rows = [row(running, plan, name, load) for load in plan.loads for name in VARIANTS]
        rows.sort(key=lambda each: each[0] != WITH)
        yield Table("overload", "Overload", COLUMNS, rows, NOTE)
        yield over_time(running, plan)


def row(running: Stage, plan: Plan, name: str, load: float) -> list[Cell]:
    """Measure one server: its capacity, then a normal load, then this load."""
    capacity = running.capacity(plan.seconds / 10, plan.seconds / 2)
    calm = plan.seconds / 2
    found = running.send(name, (NORMAL * capacity, calm), (load * capacity, plan.seconds))
    capacity = max(capacity, running.capacity(plan.seconds / 10, plan.seconds / 2))
    normal = percentile(latencies(found, 200, 0.0, calm), 0.99)
    answered, refused = (latencies(found, status, calm, math.inf) for status in (200, 503))
    due = sum(at >= calm for at in found.due)
    timed_out = sum(at >= calm and status == 0 for at, status in zip(found.due, found.status, strict=True))
    end = calm + plan.seconds
    in_time = sum(
        status == 200 and seconds <= PATIENCE_SECONDS and calm <= at + seconds <= end
        for at, seconds, status in zip(found.due, found.seconds, found.status, strict=True)
    )
    rates = capacity, due / plan.seconds, in_time / plan.seconds, in_time / plan.seconds / capacity
    p99 = percentile(answered, 0.99)
    times = percentile(answered, 0.5), p99, p99 / max(normal, 0.001)
    refusals = len(refused) / plan.seconds, percentile(refused, 0.5), percentile(refused, 0.99)
    return [name, round(100 * load), *rates, *times, *refusals, 100 * timed_out / max(1, due)]


def over_time(running: Stage, plan: Plan) -> Table:
    """Measure a period of overload between two periods of normal load."""
    rows: list[list[Cell]] = []
    for name in VARIANTS:
        capacity = running.capacity(plan.seconds / 10, plan.seconds / 2)
        calm, overload = (NORMAL * capacity, plan.calm), (OVERLOAD * capacity, plan.overload)
        found = running.send(name, calm, overload, calm)
        capacity = max(capacity, running.capacity(plan.seconds / 10, plan.seconds / 2))
        rows += bins(name, found, capacity, 2 * plan.calm + plan.overload)
    return Table("overload-time", "Overload over time", LINES, rows, TIMES)


def bins(name: str, found: Outcomes, capacity: float, seconds: float) -> Iterator[list[Cell]]:
    """Yield the rates of responses and the latency of the answered requests, by the time of the response."""
    ended = [due + took for due, took in zip(found.due, found.seconds, strict=True)]
    for nth in range(max(2, round(seconds / BIN_SECONDS))):
        start, end = nth * BIN_SECONDS, (nth + 1) * BIN_SECONDS
        among = [place for place, at in enumerate(ended) if start <= at < end]
        answered = sorted(found.seconds[place] for place in among if found.status[place] == 200)
        in_time = sum(seconds <= PATIENCE_SECONDS for seconds in answered)
        refused = len(among) - len(answered)
        rates = in_time / BIN_SECONDS / capacity, refused / BIN_SECONDS / capacity
        yield [name, end, *rates, percentile(answered, 0.99)]


def latencies(found: Outcomes, status: int, start: float, end: float) -> list[float]:
    """Return the sorted latencies of the responses with this status to requests that were due in this period."""
    outcomes = zip(found.due, found.seconds, found.status, strict=True)
    return sorted(seconds for due, seconds, given in outcomes if given == status and start <= due < end)


def draw(tables: Mapping[str, Table], folder: Path) -> None:
    """Draw goodput and latency by load and over time."""
    plot_overload(tables["overload"], tables["overload-time"], folder)


def benchmark() -> Benchmark[Plan]:
    """Return the command."""
    return Benchmark("Measure a server that gets more requests than it can answer.", SIZES, measure, draw)


if __name__ == "__main__":
    benchmark().main()
