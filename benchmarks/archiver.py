"""The archiver: `python -m benchmarks.archiver [--quick] [--json FILE] [--plots DIR]`.

Measures how fast the archiver copies a backlog of the log into SQL databases, alone and while home pages are read.
"""

import asyncio
import itertools
import multiprocessing
import random
import statistics
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from sqlalchemy import text

from benchmarks.command import Benchmark
from benchmarks.databases import databases
from benchmarks.latencies import Latencies
from benchmarks.report import Cell, Table
from benchmarks.stores import open_graph, private_store, raw
from benchmarks.worlds import PAGE, STEP, TEXT, Authors, Crowd
from graph import Graph, keys
from graph.archive.archive import Archive
from graph.binding import binding_of
from graph.log.events import EventBody, Followed, PostDeleted, PostPublished, ProfileChanged, Unfollowed, UserCreated
from graph.paging import Window
from graph.projections.mode import Mode
from tests.support.graph_worlds import append_events

EVENTS_PER_APPEND = 1000
TIMEOUT_SECONDS = 20.0
ALONE, READS = "nothing", "reads"
STORE_ID = "store-of-the-benchmark"
KINDS = {PostPublished: 70, Followed: 20, Unfollowed: 4, PostDeleted: 3, ProfileChanged: 2, UserCreated: 1}
COLUMNS = (
    "database",
    "also running",
    "events",
    "seconds",
    "events/s",
    "archiver CPU ms/1,000",
    "bytes/event",
    "pages/s",
    "page p50 ms",
    "page p99 ms",
)
NOTE = (
    "One archiver process with a backlog of projected events: 70% posts, 20% follows, the others unfollows, deletions, "
    "profiles and sign-ups. Every commit is synced to disk (SQLite: synchronous=FULL). 'Bytes/event' is the size of "
    "the database with its indexes. Pages are read by one client, one after the other; in the first row without an "
    "archiver. Medians. Goals: 5,000 events/s on SQLite, 10,000 on PostgreSQL, next to reads."
)
SIZES_OF_DATABASES = {
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    "postgresql": "SELECT pg_total_relation_size('events') + pg_total_relation_size('credentials')",
    "mysql": "SELECT sum(file_size) FROM information_schema.innodb_sys_tablespaces "
    "WHERE name LIKE concat(database(), '/%')",
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """The number of events, the authors and readers, the runs per database, the seconds of reads, and the databases."""

    events: int = 200_000
    crowd: Crowd = field(default=Crowd(1_000, 100, Authors(100, 50)))
    runs: int = 2
    seconds: float = 10.0
    kinds: Sequence[str] = ("SQLite", "PostgreSQL", "MariaDB")


SIZES = {
    "full": Sizes(),
    "quick": Sizes(20_000, Crowd(100, 50, Authors(50, 20)), 1, 2.0),
    "tiny": Sizes(300, Crowd(10, 20, Authors(20, 5)), 1, 0.1, ("SQLite",)),
}


@dataclass(frozen=True, slots=True)
class Backlog:
    """A store whose log holds projected events, and the readers of home pages."""

    url: str
    client: Any
    graph: Graph
    crowd: Crowd
    events: int

    async def bind(self, url: str) -> None:
        """Bind the store to another archive, which is empty."""
        archive = Archive(url)
        await archive.bind(STORE_ID, replacing=None, unused_only=True)
        state = await archive.state()
        await archive.close()
        self.client.set(keys.BINDING, binding_of(STORE_ID, state.id))
        self.client.unlink(keys.ARCHIVED, keys.ARCHIVER)

    async def read_pages(self, noted: Latencies, is_over: Callable[[], bool]) -> None:
        """Read the viewers' first home pages in turn until `is_over` returns True, and record the latencies."""
        for index in itertools.cycle(range(self.crowd.viewers)):
            if is_over():
                return
            await noted.time(partial(self.graph.timelines.home, self.crowd.viewer(index), Window(PAGE, forward=True)))


@asynccontextmanager
async def backlog(sizes: Sizes) -> AsyncIterator[Backlog]:
    """Build a store with a backlog. The events of the log are independent of the crowd that reads."""
    with private_store() as url, raw(url) as client:
        graph = await open_graph(url)
        try:
            sizes.crowd.authors.build(client)
            sizes.crowd.build(client)
            await sizes.crowd.check(graph, range(0, sizes.crowd.viewers, 1 + sizes.crowd.viewers // 20))
            await append_all(graph, sizes.events)
            yield Backlog(url, client, graph, sizes.crowd, sizes.events)
        finally:
            await graph.close()


async def append_all(graph: Graph, count: int) -> None:
    """Append events of all kinds, and project them."""
    posts: list[tuple[int, int]] = []
    chance = random.Random(4)
    for start in range(0, count, EVENTS_PER_APPEND):
        some = list(bodies(start, min(EVENTS_PER_APPEND, count - start), posts, chance))
        logins = [body.login for body in some if isinstance(body, UserCreated)]
        await graph.users.claim_many([(login, login, None) for login in logins])
        events = await append_events(graph, some)
        await graph.projections.project(events, Mode.WORKER)
        posts += [(event.number, event.body.author) for event in events if isinstance(event.body, PostPublished)]
    await graph.store.run("SET", keys.WATERMARK, graph.log.seen)


def bodies(start: int, count: int, posts: list[tuple[int, int]], chance: random.Random) -> Iterator[EventBody]:
    """Yield the bodies of `count` events. A deletion removes its post, a pair of post and author, from `posts`."""
    kinds = chance.choices(list(KINDS), list(KINDS.values()), k=count)
    for place, kind in enumerate(kinds, start):
        user, other = STEP * chance.randint(1, 1000), STEP * chance.randint(1, 1000)
        if kind is PostDeleted and posts:
            post, author = posts.pop(chance.randrange(len(posts)))
            yield PostDeleted(author, post)
        elif kind is UserCreated:
            yield UserCreated(f"person{place}", f"Person {place}", f"person{place}")
        elif kind is ProfileChanged:
            yield ProfileChanged(user, f"Person {place}", "Writes about the market.")
        elif kind in (Followed, Unfollowed):
            yield (Followed if kind is Followed else Unfollowed)(user, other)
        else:
            yield PostPublished(user, TEXT % place, "web")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the archiver over the backlog: wall time and CPU time in seconds, and the size of the archive."""

    events: int
    seconds: float
    cpu: float
    bytes: int


def archive_all(url: str, archive_url: str, pipe: Connection) -> None:
    """Archive the whole log in this process when a message arrives in the pipe, and send the results of the run."""

    async def work() -> None:
        graph = await Graph.open(url, Archive(archive_url))
        await graph.binding.check()
        pipe.send("ready")
        pipe.recv()
        started, cpu = time.perf_counter(), time.process_time()
        await graph.archiver.work()
        spent = time.perf_counter() - started, time.process_time() - cpu
        pipe.send(Run(graph.archiver.archived, *spent, await size_of(graph.archive)))
        await graph.close()

    asyncio.run(work())


async def size_of(archive: Archive) -> int:
    """Return the size of an archive on disk in bytes."""
    query = text(SIZES_OF_DATABASES[archive.database.kind])
    async with archive.database.engine.connect() as connection:
        return int((await connection.execute(query)).scalar_one())


async def archive_once(backlog: Backlog, archive_url: str, noted: Latencies | None) -> Run:
    """Run the archiver in another process. If `noted` is given, read pages meanwhile and add their latencies to it."""
    await backlog.bind(archive_url)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", "graph.archive.archive"])
    here, there = context.Pipe()
    process = context.Process(target=archive_all, args=(backlog.url, archive_url, there), daemon=True)
    process.start()
    try:
        here.recv()
        here.send("go")
        if noted is not None:
            await backlog.read_pages(noted, here.poll)
        run: Run = await asyncio.to_thread(here.recv)
    finally:
        process.join(TIMEOUT_SECONDS)
        process.kill()
    assert run.events == backlog.events, f"{run.events} of {backlog.events} events were archived"
    return run


async def measure(sizes: Sizes) -> AsyncIterator[Table]:
    """Measure each database in turn, alone and while home pages are read."""
    runs: dict[tuple[str, str], list[Run]] = {}
    pages: dict[tuple[str, str], Latencies] = {}
    async with backlog(sizes) as there:
        with databases(sizes.kinds) as makers:
            for _, (kind, make), beside in itertools.product(range(sizes.runs), makers.items(), (ALONE, READS)):
                noted = pages.setdefault((kind, beside), Latencies()) if beside == READS else None
                runs.setdefault((kind, beside), []).append(await archive_once(there, make(), noted))
        only = Latencies()
        until = time.perf_counter() + sizes.seconds
        await there.read_pages(only, lambda: time.perf_counter() > until)
    rows = [["none", READS, 0, 0, 0, 0, 0, *page_figures(only)]]
    rows += [row(kind, beside, some, pages.get((kind, beside))) for (kind, beside), some in runs.items()]
    yield Table("archiver", "The archiver next to reads", COLUMNS, rows, NOTE)


def row(kind: str, beside: str, runs: Sequence[Run], noted: Latencies | None) -> list[Cell]:
    """Return the row of several runs, with medians of their times."""
    events = runs[0].events
    seconds = statistics.median(run.seconds for run in runs)
    cpu = statistics.median(run.cpu for run in runs)
    figures = (events, seconds, round(events / seconds), 1e6 * cpu / events, runs[0].bytes / events)
    return [kind, beside, *figures, *page_figures(noted)]


def page_figures(noted: Latencies | None) -> list[Cell]:
    """Return pages per second, p50 and p99."""
    return [round(noted.count / sum(noted.durations)), noted.p50, noted.p99] if noted else ["", "", ""]


def benchmark() -> Benchmark[Sizes]:
    """Return the command."""
    return Benchmark("Measure the archiver.", SIZES, measure)


if __name__ == "__main__":
    benchmark().main()
