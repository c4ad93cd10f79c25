"""Read clients: `python -m benchmarks.read_clients [--quick] [--json FILE] [--plots DIR]`.

Compares Fanline's read client with redis-py, coredis and valkey-glide on one store, in alternating slices: CPU time of
the process (including the threads of valkey-glide), of the event loop's thread and of the store, and latency.
"""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.command import Benchmark
from benchmarks.latencies import Latencies
from benchmarks.plots import plot_read_clients
from benchmarks.reading import write_follows
from benchmarks.report import Cell, Table
from benchmarks.store_clients import OURS, PACKAGES, Client, Group, connected, missing
from benchmarks.stores import private_store, raw
from benchmarks.worlds import FIRST_FOLLOW, FIRST_VIEWER, PAGE, STEP, Authors
from graph import keys

AUTHORS = Authors(20, 10)
POST_FIELDS = ("author", "text", "platform", "latitude", "longitude", "deleted")
USER_FIELDS = ("id", "login", "name", "bio", "avatar_url", "website_url")
PAGES_AT_ONCE = 32
READERS = 64
KEYS_EACH = 5
THRESHOLDS = (100_000, 20, 50)  # thresholds of the garbage collector, as in the product
COLUMNS = (
    "reads",
    "client",
    "operations",
    "CPU ms",
    "event loop CPU ms",
    "store CPU ms",
    "p50 ms",
    "p99 ms",
    "store reads",
)
RATIOS = ("reads", "client", "CPU", "CPU lowest", "CPU highest", "event loop CPU", "store CPU", "p50", "p99")
NOTE = (
    "CPU ms: this process with all its threads, per operation, median of the rounds; 'event loop' is the thread that "
    "runs Python, 'store' the Valkey process. 'store reads' is how often the store read from a socket per operation. "
    "'gathered': the reads of three event-loop iterations are sent as one batch, as Fanline does. 'commands': each "
    "command is sent separately; the library shares a connection. Replies of valkey-glide are bytes, all others are "
    "decoded."
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The number of rounds, and the seconds of a slice."""

    rounds: int
    seconds: float


SIZES = {"full": Sizes(12, 0.8), "quick": Sizes(3, 0.25), "tiny": Sizes(1, 0.02)}


@dataclass(frozen=True, slots=True)
class Scenario:
    """The reads of a scenario: for each concurrent task, the round trips of the operation that it repeats."""

    name: str
    tasks: Sequence[Sequence[Sequence[Group]]]


@dataclass(slots=True)
class Figures:
    """The results of one client in one scenario. The lists have one figure per round."""

    latencies: Latencies = field(default_factory=Latencies)
    cpu: list[float] = field(default_factory=list)
    loop_cpu: list[float] = field(default_factory=list)
    store_cpu: list[float] = field(default_factory=list)
    store_reads: list[float] = field(default_factory=list)
    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)


def build(client: Any) -> list[Scenario]:
    """Write a small world and return the scenarios."""
    AUTHORS.build(client)
    authors = [AUTHORS.id(index) for index in range(AUTHORS.count)]
    for reader in range(PAGES_AT_ONCE):
        follows = {author: FIRST_FOLLOW + place * STEP for place, author in enumerate(authors)}
        write_follows(client, FIRST_VIEWER + reader * STEP, follows)
    client.mset({keys.cold(author): 7 for author in authors[::2]})
    posts = AUTHORS.newest(range(AUTHORS.count), PAGE)
    pages = [page(FIRST_VIEWER + reader * STEP, posts, authors) for reader in range(PAGES_AT_ONCE)]
    names = [f"small:{number}" for number in range(READERS * KEYS_EACH)]
    client.mset({name: f"value of {name}" for name in names})
    small = [[[Group("GET", names[start : start + KEYS_EACH])]] for start in range(0, len(names), KEYS_EACH)]
    return [
        Scenario("a page", pages[:1]),
        Scenario(f"{PAGES_AT_ONCE} pages at once", pages),
        Scenario(f"{READERS} readers of {KEYS_EACH} keys", small),
        Scenario("one GET", [[[Group("GET", names[:1], uniform=False)]]]),
    ]


def page(viewer: int, posts: Sequence[int], authors: Sequence[int]) -> list[list[Group]]:
    """Return the two round trips in which Fanline reads a page: posts, then authors, counts and relationships."""
    members = tuple(map(str, authors))
    return [
        [Group("HMGET", [keys.post(post) for post in posts], POST_FIELDS)],
        [
            Group("HMGET", [keys.user(user) for user in authors], USER_FIELDS),
            Group("ZCARD", [keys.followers(user) for user in authors]),
            Group("ZCARD", [keys.following(user) for user in authors]),
            Group("ZCARD", [keys.posts(user) for user in authors], uniform=False),
            Group("GET", [keys.cold(user) for user in authors], uniform=False),
            Group("ZMSCORE", [keys.following(viewer), keys.followers(viewer)], members, uniform=False),
        ],
    ]


async def check(clients: Mapping[str, Client], scenarios: Sequence[Scenario]) -> None:
    """Check that all clients return equal replies that are not empty."""
    for scenario in scenarios:
        for trips in scenario.tasks:
            for groups in trips:
                expected = plain(await clients[OURS].read(groups))
                assert len(expected) == sum(len(group.keys) for group in groups)
                assert any(expected)
                for name, client in clients.items():
                    assert plain(await client.read(groups)) == expected, f"{name} reads {scenario.name} differently"


def plain(reply: Any) -> Any:
    """Return a reply as lists, strings and numbers, whatever the client's types are."""
    if isinstance(reply, bytes):
        return reply.decode()
    return [plain(each) for each in reply] if isinstance(reply, (list, tuple)) else reply


class Observer:
    """Reads the store's counters: CPU time, and number of reads from sockets."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def read(self) -> tuple[float, int]:
        """Return CPU seconds and socket reads."""
        info = self._client.info("everything")
        return float(info["used_cpu_user"]) + float(info["used_cpu_sys"]), int(info["total_reads_processed"])


async def run_slice(client: Client, scenario: Scenario, seconds: float, observer: Observer, figures: Figures) -> None:
    """Repeat the operations of a scenario for some seconds, and record the results."""
    latencies = Latencies()
    gc.collect()
    store_cpu, store_reads = observer.read()
    cpu, loop_cpu, end = time.process_time(), time.thread_time(), time.perf_counter() + seconds
    await asyncio.gather(*(repeat(client, trips, end, latencies.durations) for trips in scenario.tasks))
    cpu, loop_cpu = time.process_time() - cpu, time.thread_time() - loop_cpu
    store_cpu_after, store_reads_after = observer.read()
    count = latencies.count
    figures.cpu.append(1000 * cpu / count)
    figures.loop_cpu.append(1000 * loop_cpu / count)
    figures.store_cpu.append(1000 * (store_cpu_after - store_cpu) / count)
    figures.store_reads.append((store_reads_after - store_reads - 1) / count)
    figures.p50.append(latencies.p50)
    figures.p99.append(latencies.p99)
    figures.latencies.durations += latencies.durations


async def repeat(client: Client, trips: Sequence[Sequence[Group]], end: float, durations: list[float]) -> None:
    """Repeat one operation, and record its durations."""
    now = time.perf_counter()
    while now < end:
        start = now
        for groups in trips:
            await client.read(groups)
        now = time.perf_counter()
        durations.append(now - start)


Found = Mapping[tuple[str, str], Figures]
"""Figures by scenario and client."""


async def alternate(
    clients: Mapping[str, Client], scenarios: Sequence[Scenario], sizes: Sizes, observer: Observer
) -> Found:
    """Measure all clients in turn, slice by slice. Each round begins with another client.

    Garbage collections are as rare as in the product.
    """
    names = list(clients)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    found = {(scenario.name, name): Figures() for scenario in scenarios for name in names}
    for scenario in scenarios:
        for client in clients.values():
            await run_slice(client, scenario, sizes.seconds, observer, Figures())
    for round_ in range(sizes.rounds):
        first = round_ % len(names)
        for scenario in scenarios:
            for name in names[first:] + names[:first]:
                await run_slice(clients[name], scenario, sizes.seconds, observer, found[scenario.name, name])
    return found


def figures_of(found: Found) -> Table:
    """Return the table of figures."""
    rows: list[list[Cell]] = []
    for label, figures in found.items():
        taken = (figures.cpu, figures.loop_cpu, figures.store_cpu)
        latencies = figures.latencies
        cells = (latencies.count, *map(median, taken), latencies.p50, latencies.p99, median(figures.store_reads))
        rows.append([*label, *cells])
    packages = [f"{name} {version(name)}" for name in PACKAGES.values() if name not in missing()]
    packages += [f"{name} is not installed and left out" for name in missing()]
    return Table("reads", "Read clients", COLUMNS, rows, f"{NOTE} {'; '.join(packages)}.")


def ratios_of(found: Found) -> Table:
    """Return the table of ratios: each client's figure divided by Fanline's figure of the same round."""
    rows: list[list[Cell]] = []
    for (scenario, name), theirs in found.items():
        if name == OURS:
            continue
        ours = found[scenario, OURS]
        cpu = quotients(theirs.cpu, ours.cpu)
        rest = [
            median(quotients(getattr(theirs, figure), getattr(ours, figure)))
            for figure in ("loop_cpu", "store_cpu", "p50", "p99")
        ]
        rows.append([scenario, name, median(cpu), min(cpu), max(cpu), *rest])
    note = "The other client's figure divided by Fanline's of the same round: medians, and the lowest and highest CPU."
    return Table("ratios", "Other clients ÷ Fanline's", RATIOS, rows, note)


def quotients(theirs: Sequence[float], ours: Sequence[float]) -> list[float]:
    """Return the ratios of two figures, round by round."""
    return [their / our if our else 0.0 for their, our in zip(theirs, ours, strict=True)]


async def measure(sizes: Sizes) -> AsyncIterator[Table]:
    """Measure all installed clients."""
    with private_store() as url, raw(url) as client:
        scenarios = build(client)
        async with connected(url) as clients:
            await check(clients, scenarios)
            found = await alternate(clients, scenarios, sizes, Observer(client))
    yield figures_of(found)
    yield ratios_of(found)


def draw(tables: Mapping[str, Table], folder: Path) -> None:
    """Draw the CPU time."""
    plot_read_clients(tables["reads"], folder)


def benchmark() -> Benchmark[Sizes]:
    """Return the command."""
    return Benchmark("Compare clients that can read from the store.", SIZES, measure, draw)


if __name__ == "__main__":
    benchmark().main()
