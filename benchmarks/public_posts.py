"""Moves of the public timeline: `python -m benchmarks.public_posts [--quick] [--json FILE]`.

An author with most of the posts is suspended and comes back, while the archiver writes a batch ten times a second and
a reader asks for the newest page. Then the table is emptied and filled again, as after an upgrade.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import orjson
from sqlalchemy import func, select, text

from benchmarks.command import Benchmark
from benchmarks.databases import SQLITE, databases
from benchmarks.report import Cell, Table
from graph.archive.archive import Archive
from graph.archive.rows import POST, SUSPENSION, UNSUSPENSION, EventRow
from graph.archive.tables import PUBLIC_POSTS
from graph.archiver.moves import Moves
from graph.paging import Window

STORE = "benchmark"
SPAMMER = 1
BATCH = 100
INTERVAL_SECONDS = 0.1
LOADED_AT_ONCE = 2000
NEWEST = 10_000
COLUMNS = (
    *("database", "move", "posts", "newest 10,000 s", "all s"),
    *("batch p50 ms", "batch p99 ms", "page p99 ms", "pages"),
)
NOTE = (
    f"Two of three posts are by one author. A batch of {BATCH} posts is archived every {INTERVAL_SECONDS:g} s, and "
    "pages of 20 posts are read one after the other with pauses. Every commit is on disk."
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many posts the author has, and how long the archiver is measured alone."""

    posts: int
    seconds: float
    kinds: Sequence[str] = (SQLITE, "PostgreSQL")


class Alone:
    """What `Moves` asks about the store, for an archive without one: this process always archives."""

    is_held = True

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    async def archive(self) -> Archive:
        """Return the archive."""
        return self._archive

    async def store_id(self) -> str:
        """Return the id of the store."""
        return STORE


@dataclass
class Load:
    """The archiver and a reader at work, with the durations of their batches and pages."""

    archive: Archive
    number: int
    batches: list[float] = field(default_factory=list)
    pages: list[float] = field(default_factory=list)
    due: list[EventRow] = field(default_factory=list)

    def post(self, author: int) -> EventRow:
        """Return the next post."""
        self.number += 1
        return EventRow(self.number, POST, author, None, orjson.dumps({"text": f"text {self.number}"}).decode())

    def decide(self, kind: str) -> None:
        """Let the next batch suspend the author, or end the suspension."""
        self.number += 1
        self.due = [EventRow(self.number, kind, SPAMMER, None, "{}")]

    async def write(self) -> None:
        """Archive batches until cancelled."""
        while True:
            watermark, due = (await self.archive.state()).watermark, self.due
            rows = [*due, *(self.post(2 + n) for n in range(BATCH))]
            start = time.perf_counter()
            await self.archive.append(rows, [], store=STORE, watermark=watermark, upto=self.number)
            self.batches.append(time.perf_counter() - start)
            self.due = [] if self.due is due else self.due
            await asyncio.sleep(INTERVAL_SECONDS)

    async def read(self) -> None:
        """Read the newest page until cancelled."""
        while True:
            start = time.perf_counter()
            rest: Window | None = Window(21, True)
            while rest is not None and rest.count:
                rows, rest = await self.archive.published(rest)
                rest = replace(rest, count=rest.count - len(rows)) if rest else None
            self.pages.append(time.perf_counter() - start)
            await asyncio.sleep(INTERVAL_SECONDS / 5)

    def taken(self) -> list[Cell]:
        """Return the percentiles of what was measured since the last call."""
        batches, pages = sorted(self.batches), sorted(self.pages)
        self.batches, self.pages = [], []
        durations = (at(batches, 0.5), at(batches, 0.99), at(pages, 0.99))
        return [*(round(1000 * each, 1) for each in durations), len(pages)]


def at(values: Sequence[float], share: float) -> float:
    """Return a percentile of sorted values, 0 if there are none."""
    return 0.0 if not values else values[min(len(values) - 1, int(share * len(values)))]


async def load(archive: Archive, posts: int) -> int:
    """Archive two posts of the author for each one of others, and return the last number."""
    await archive.bind(STORE, replacing=None, unused_only=True)
    writer = Load(archive, 0)
    while writer.number < posts * 3 // 2:
        low = writer.number
        rows = [writer.post(SPAMMER if n % 3 else 2 + n) for n in range(LOADED_AT_ONCE)]
        await archive.append(rows, [], store=STORE, watermark=low, upto=writer.number, indexes=False)
    return writer.number


async def held(archive: Archive, above: int) -> int:
    """Return how many posts of the author the table holds above a number."""
    of_author = (PUBLIC_POSTS.c.author == SPAMMER) & (PUBLIC_POSTS.c.number > above)

    async def work(connection: Any) -> int:
        return int(await connection.scalar(select(func.count()).select_from(PUBLIC_POSTS).where(of_author)))

    return await archive.database.transaction(work)


async def until(archive: Archive, above: int, wanted: int, start: float) -> float:
    """Return the seconds since `start` until the table holds so many posts of the author above a number."""
    while await held(archive, above) != wanted:  # noqa: ASYNC110 - the database sends no notification
        await asyncio.sleep(0.1)
    return round(time.perf_counter() - start, 1)


@asynccontextmanager
async def running(*work: Any) -> AsyncIterator[None]:
    """Run coroutines beside the block."""
    tasks = [asyncio.ensure_future(each) for each in work]
    yield
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, Exception):
            raise outcome


async def rows_of(kind: str, archive: Archive, sizes: Sizes) -> AsyncIterator[list[Cell]]:
    """Yield the measurements of one database."""
    work = Load(archive, await load(archive, sizes.posts))
    posts, newest = await held(archive, 0), work.number - NEWEST * 3 // 2
    alone = Alone(archive)
    moves = Moves(cast(Any, alone), cast(Any, alone))
    async with running(work.write(), work.read()):
        await asyncio.sleep(sizes.seconds)
        yield [kind, "nothing", posts, "", "", *work.taken()]
        for what, wanted in ((SUSPENSION, (0, 0)), (UNSUSPENSION, (await held(archive, newest), posts))):
            start = time.perf_counter()
            work.decide(what)
            async with running(moves.run()):
                first = await until(archive, newest, wanted[0], start)
                every = await until(archive, 0, wanted[1], start)
            yield [kind, what, posts, first, every, *work.taken()]
        async with archive.database.engine.begin() as connection:
            await connection.execute(text("DELETE FROM public_posts"))
            await connection.execute(
                text("UPDATE public_moves SET rest = :rest WHERE author = 0"), {"rest": work.number + 1}
            )
        work.batches, work.pages = [], []
        start = time.perf_counter()
        async with running(moves.run()):
            first = await until(archive, newest, wanted[0], start)
            every = await until(archive, 0, posts, start)
        yield [kind, "fill", posts, first, every, *work.taken()]


async def measure(sizes: Sizes) -> AsyncIterator[Table]:
    """Yield the table of all databases."""
    rows: list[list[Cell]] = []
    with databases(sizes.kinds) as makers:
        for kind, make in makers.items():
            archive = Archive(make(), timeout=60.0)
            rows += [row async for row in rows_of(kind, archive, sizes)]
            await archive.close()
    yield Table("moves", "Public timeline: moves", COLUMNS, rows, NOTE)


SIZES = {"full": Sizes(200_000, 20.0), "quick": Sizes(30_000, 5.0), "tiny": Sizes(15_000, 0.5, (SQLITE,))}

if __name__ == "__main__":
    Benchmark("Measure the moves of posts on the public timeline.", SIZES, measure).main()
