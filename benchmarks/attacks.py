"""Attacks: `python -m benchmarks.attacks [--quick] [--json FILE] [--plots DIR]`. On Linux with two processors.

Measures the latency of well-behaved readers during each class of attack, with the server in production mode. Slices
with and without the attack alternate. The server has one processor; attackers and readers share the other one.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.attackers import ATTACKS
from benchmarks.command import Benchmark
from benchmarks.latencies import Latencies
from benchmarks.plots import plot
from benchmarks.report import Cell, Table
from benchmarks.stores import cpu_seconds, private_store
from tests.attacks.victim import Victim
from tests.attacks.world import LOUD, World, seed_world

COLUMNS = (
    "attack",
    "attacks/s",
    "reads",
    "failed",
    "p50 without ms",
    "p50 during ms",
    "p99 without ms",
    "p99 during ms",
    "server CPU without %",
    "server CPU during %",
    "p99 ratio",
)
NOTE = (
    "Readers with a token ask for 20 posts of their home timeline with authors, {readers} of them {rate} times a "
    "second each, from an address of their own. Rates are limited, as in production. Goal: a p99 ratio of 3 at most."
)
GOAL = 3.0
HOME = (
    "{ viewer { homeTimeline { entries(first: 20) { edges { cursor node { "
    "id author { login name } ... on Post { text } } } } } } }"
)
ADDRESS = "127.0.0.3"
ATTACKING = {LOUD, "carol"}  # users whose tokens the attackers use, or whose posts they request
SETTLE = 0.5  # seconds between two slices
TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Slices:
    """The number of rounds per attack, the seconds of a slice, and the requests per second of each reader."""

    rounds: int
    seconds: float
    rate: float


SIZES = {"full": Slices(3, 2.5, 2.0), "quick": Slices(1, 2.0, 2.0), "tiny": Slices(1, 0.2, 4.0)}


@dataclass
class Results:
    """The readers' results in slices of one kind, and the CPU time of the server."""

    latencies: Latencies = field(default_factory=Latencies)
    failed: int = 0
    cpu: float = 0.0
    seconds: float = 0.0


class Reader:
    """A reader, with a token or anonymous, on a connection that is reopened if the server closes it."""

    def __init__(self, port: int, token: str | None, query: str = HOME, address: str = ADDRESS) -> None:
        body = json.dumps({"query": query}).encode()
        self._port = port
        self._address = address
        login = f"authorization: Bearer {token}\r\n" if token else ""
        self._request = (
            f"POST /graphql HTTP/1.1\r\nhost: localhost\r\n{login}"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        ).encode() + body
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def read(self, results: Results, seconds: float, rate: float) -> None:
        """Send requests at a fixed rate. A late response delays the next request."""
        end = time.perf_counter() + seconds
        while (now := time.perf_counter()) < end:
            await results.latencies.time(lambda: self._ask(results))
            await asyncio.sleep(max(0.0, now + 1 / rate - time.perf_counter()))

    async def _ask(self, results: Results) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                if self._streams is None:
                    self._streams = await asyncio.open_connection(
                        "127.0.0.1", self._port, local_addr=(self._address, 0)
                    )
                reader, writer = self._streams
                writer.write(self._request)
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
                body = await reader.readexactly(size)
                results.failed += not body.startswith(b'{"data":{') or b'"errors"' in body
        except (OSError, EOFError, TimeoutError):
            results.failed += 1
            self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


@dataclass
class Stage:
    """The server, its readers and its attackers."""

    victim: Victim
    readers: Sequence[Reader]
    attackers: Process

    async def measure_slice(self, results: Results, slices: Slices) -> None:
        """Measure the readers for one slice."""
        before, start = cpu_seconds(self.victim.pid), time.perf_counter()
        await asyncio.gather(*(each.read(results, slices.seconds, slices.rate) for each in self.readers))
        results.cpu += cpu_seconds(self.victim.pid) - before
        results.seconds += time.perf_counter() - start
        await asyncio.sleep(min(SETTLE, slices.seconds))

    async def send(self, line: str) -> None:
        """Send a command to the attackers."""
        assert self.attackers.stdin
        self.attackers.stdin.write(f"{line}\n".encode())
        await self.attackers.stdin.drain()

    async def stop(self) -> int:
        """Stop the attack and return the number of its steps."""
        await self.send("")
        assert self.attackers.stdout
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return int(await self.attackers.stdout.readline())

    async def row(self, name: str, slices: Slices) -> list[Cell]:
        """Measure one attack, and return its row."""
        without, during, steps, attacked = Results(), Results(), 0, 0.0
        for _ in range(slices.rounds):
            await self.measure_slice(without, slices)
            start = time.perf_counter()
            await self.send(name)
            await asyncio.sleep(min(SETTLE, slices.seconds))
            await self.measure_slice(during, slices)
            steps += await self.stop()
            attacked += time.perf_counter() - start
            await asyncio.sleep(min(SETTLE, slices.seconds))
        calm, busy = without.latencies, during.latencies
        counts = steps / attacked, busy.count, without.failed + during.failed
        times = calm.p50, busy.p50, calm.p99, busy.p99
        shares = 100 * without.cpu / without.seconds, 100 * during.cpu / during.seconds
        return [name, *counts, *times, *shares, busy.p99 / calm.p99]


async def measure(slices: Slices) -> AsyncIterator[Table]:
    """Measure all attacks."""
    async with stage() as set_up:
        await set_up.measure_slice(Results(), slices)
        rows = [await set_up.row(name, slices) for name in ATTACKS]
    note = NOTE.format(readers=len(set_up.readers), rate=slices.rate)
    yield Table("attacks", "Readers under attack", COLUMNS, rows, note)


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    """Run a server with a small world on one processor, and its readers and attackers on the other."""
    with private_store() as url, tempfile.TemporaryDirectory(prefix="fanline-attacks-") as folder:
        world = await seed_world(url)
        with Victim(Path(folder), url, world, rates=True) as victim:
            processors = sorted(os.sched_getaffinity(0))
            pin(victim.pid, processors[:1])
            pin(os.getpid(), processors[1:] or processors)
            readers = [Reader(victim.port, token) for login, token in world.tokens.items() if login not in ATTACKING]
            async with attackers(victim.port, world) as process:
                try:
                    yield Stage(victim, readers, process)
                finally:
                    for reader in readers:
                        reader.close()
                    pin(os.getpid(), processors)


def pin(process: int, processors: Sequence[int]) -> None:
    """Restrict all threads of a process to these processors."""
    for thread in Path(f"/proc/{process}/task").iterdir():
        os.sched_setaffinity(int(thread.name), processors)


@asynccontextmanager
async def attackers(port: int, world: World) -> AsyncIterator[Process]:
    """Run the attackers' process for the duration of the block, and send it the world."""
    command = (sys.executable, "-m", "benchmarks.attackers", str(port))
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    assert process.stdin
    try:
        process.stdin.write(json.dumps(asdict(world)).encode() + b"\n")
        await process.stdin.drain()
        yield process
    finally:
        process.stdin.close()
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def draw(tables: Mapping[str, Table], folder: Path) -> None:
    """Draw the ratios of p99, in the order of the table."""
    table = tables["attacks"]
    order: list[Cell] = list(range(1, len(table.rows) + 1))
    lines = {"p99 during ÷ p99 without": (order, table.column("p99 ratio"))}
    axes = ("attack, in the order of the table", "ratio")
    plot(folder / "attacks.svg", table.title, axes, lines, (f"goal: {GOAL:.0f}", GOAL), linear=True)


def benchmark() -> Benchmark[Slices]:
    """Return the command."""
    return Benchmark("Measure readers under attack.", SIZES, measure, draw)


if __name__ == "__main__":
    benchmark().main()
