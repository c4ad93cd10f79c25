"""Attacks on the archive: `python -m benchmarks.archive_attacks [--quick] [--json FILE]`. On Linux with two processors.

Ten addresses send the most expensive searches and pages that are accepted, while readers with other identities and
addresses read home timelines, the public timeline, and search. The server is in production mode, with its rate limits.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.attacks import HOME, Reader, Results, attackers, pin
from benchmarks.calibration import attacked, fill
from benchmarks.command import Benchmark
from benchmarks.report import Cell, Table
from benchmarks.stores import private_store
from tests.attacks.victim import Victim

COLUMNS = (
    "attack",
    "readers of",
    "reads",
    "failed",
    "p50 without ms",
    "p50 during ms",
    "p99 without ms",
    "p99 during ms",
    "attacks/s",
    "server CPU during %",
)
NOTE = "Goal: no failure, and a p99 of at most three times that without the attack, or 50 ms."
PUBLIC = "{ publicTimeline { entries(first: 20) { nodes { id author { login name } ... on Post { text } } } } }"
SEARCH = '{ searchPosts(filter: {keywords: ["kitchen bread"]}) { posts(first: 20) { nodes { id text } } } }'
ATTACKS = ("searches (X20)", "false candidates (X21)", "public pages (X22)")
WITH_TOKENS = 20
ANONYMOUS = 10


@dataclass(frozen=True, slots=True)
class Sizes:
    """The seconds of a slice, with or without an attack, and the scale of the world."""

    seconds: float
    scale: float


SIZES = {"full": Sizes(30.0, 1.0), "quick": Sizes(8.0, 0.3), "tiny": Sizes(0.3, 0.02)}


@dataclass
class Crowd:
    """The readers of one kind, and how often each of them reads per second."""

    readers: Sequence[Reader]
    rate: float
    results: Results = field(default_factory=Results)


def crowds(port: int, tokens: Sequence[str]) -> Mapping[str, Crowd]:
    """Return the readers by what they read. Nobody reads more than the rate limits allow."""
    return {
        "home timelines": Crowd([Reader(port, token, HOME, "127.0.2.1") for token in tokens], 2.0),
        "the public timeline": Crowd([Reader(port, None, PUBLIC, f"127.0.3.{at + 1}") for at in range(ANONYMOUS)], 0.4),
        "searches": Crowd([Reader(port, token, SEARCH, "127.0.2.2") for token in tokens], 0.1),
    }


async def measured(readers: Mapping[str, Crowd], seconds: float) -> Mapping[str, Results]:
    """Let all readers read for some seconds, and return their results."""
    found = {name: Results() for name in readers}
    await asyncio.gather(
        *(reader.read(found[name], seconds, crowd.rate) for name, crowd in readers.items() for reader in crowd.readers)
    )
    return found


async def measure(sizes: Sizes) -> AsyncIterator[Table]:
    """Measure all attacks."""
    with private_store() as url, tempfile.TemporaryDirectory(prefix="fanline-attacks-") as name:
        archive = f"sqlite:///{name}/archive.sqlite"
        world = await fill(url, archive, sizes.scale, WITH_TOKENS)
        settings = {"FANLINE_ARCHIVE_URL": archive}
        with Victim(Path(name) / "server", url, attacked(world), rates=True, settings=settings) as victim:
            processors = sorted(os.sched_getaffinity(0))
            pin(victim.pid, processors[:1])
            pin(os.getpid(), processors[1:] or processors)
            try:
                yield await table_of(victim, world.tokens, sizes)
            finally:
                pin(os.getpid(), processors)


async def table_of(victim: Victim, tokens: Sequence[str], sizes: Sizes) -> Table:
    """Return the table of all attacks."""
    rows: list[list[Cell]] = []
    readers = crowds(victim.port, tokens)
    await measured(readers, min(2.0, sizes.seconds))
    async with attackers(victim.port, victim.world) as process:
        assert process.stdin
        assert process.stdout
        for attack in ATTACKS:
            calm = await measured(readers, sizes.seconds)
            process.stdin.write(f"{attack}\n".encode())
            cpu, start = victim.cpu(), time.perf_counter()
            busy = await measured(readers, sizes.seconds)
            share = (victim.cpu() - cpu) / (time.perf_counter() - start)
            process.stdin.write(b"\n")
            steps = int(await process.stdout.readline()) / (time.perf_counter() - start)
            for name in readers:
                before, during = calm[name].latencies, busy[name].latencies
                failed = calm[name].failed + busy[name].failed
                times = before.p50, during.p50, before.p99, during.p99
                rows.append([attack, name, during.count, failed, *times, steps, 100 * share])
            await asyncio.sleep(min(5.0, sizes.seconds))
    for crowd in readers.values():
        for reader in crowd.readers:
            reader.close()
    return Table("archive-attacks", "Readers while the archive is attacked", COLUMNS, rows, NOTE)


def benchmark() -> Benchmark[Sizes]:
    """Return the command."""
    return Benchmark("Measure readers while ten addresses attack the archive.", SIZES, measure)


if __name__ == "__main__":
    benchmark().main()
