"""Reading home pages: latency and CPU time by model, by number of followed authors, and by depth."""

import itertools
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.latencies import Latencies
from benchmarks.report import Cell, Table
from benchmarks.worlds import FIRST_FOLLOW, FIRST_VIEWER, PAGE, STEP, Authors
from graph import Graph, keys
from graph.paging import Window

MODELS = ("push", "hybrid", "pull", "hibernated")
MOST_MARKED = 50
COLUMNS = ("followed", "mode", "marked", "reads", "p50 ms", "p99 ms", "process CPU ms", "round trips", "p50 ÷ push")
NOTE = (
    f"First page of {PAGE} posts, read by one client. push: complete cache. hybrid: a tenth of the authors, at most "
    f"{MOST_MARKED}, are merged when the page is read ('marked'). pull: all authors are merged. hibernated: no cache; "
    "all authors are merged, and the cache is rebuilt after the response. Variants alternate in short slices of one "
    "run."
)
DEPTH_COLUMNS = ("depth in posts", "where", "mode", "reads", "p50 ms", "p99 ms", "process CPU ms", "round trips")
DEPTH_NOTE = (
    f"Pages of {PAGE} posts after a cursor at this depth, read by viewers who follow {{}} authors; a cache holds {{}} "
    "posts."
)


@dataclass(frozen=True, slots=True)
class Reader:
    """A viewer of one model, and the authors whom they follow."""

    id: int
    model: str
    followed: Sequence[int]

    @property
    def marked(self) -> Sequence[int]:
        """The authors who are merged into this reader's pages."""
        shares = {"hybrid": min(MOST_MARKED, max(1, len(self.followed) // 10)), "pull": len(self.followed)}
        return self.followed[: shares.get(self.model, 0)]


@dataclass(frozen=True, slots=True)
class Library:
    """Authors, readers of every model, and the store."""

    client: Any
    graph: Graph
    authors: Authors
    readers: Sequence[Reader]

    async def build(self) -> None:
        """Write authors and follows, and let the graph build the caches of each model."""
        self.authors.build(self.client)
        for reader in self.readers:
            follows = {self.authors.id(one): FIRST_FOLLOW + place * STEP for place, one in enumerate(reader.followed)}
            write_follows(self.client, reader.id, follows)
        for reader in self.readers:
            if reader.model != "hibernated":
                await self.settle(reader)

    async def settle(self, reader: Reader) -> None:
        """Build a reader's cache while the delivery mode of the marked authors is pull, and check what it shows."""
        modes = [keys.delivery(self.authors.id(author)) for author in reader.marked]
        if modes:
            self.client.mset(dict.fromkeys(modes, "pull"))
        await self.page(reader)
        await self.graph.timelines.wait_for_rebuilds()
        if modes:
            self.client.unlink(*modes)
        marks = self.client.zcount(keys.home(reader.id), -1, -1)
        assert marks == len(modes), f"{marks} authors are marked for {reader}"
        for skip in (0, min(10 * PAGE, len(reader.followed) * self.authors.posts_each // 2)):
            await self.check(reader, skip)

    async def check(self, reader: Reader, skip: int) -> None:
        """Check that a page holds the expected posts."""
        shown = await self.page(reader, skip)
        assert shown == self.authors.newest(reader.followed, PAGE, skip), (
            f"a reader of the model {reader.model} has a wrong page"
        )

    async def page(self, reader: Reader, skip: int = 0) -> list[int]:
        """Return the page after `skip` posts."""
        window = self.window(reader, skip)
        return [post.id for post in (await self.graph.timelines.home(reader.id, window)).items]

    def window(self, reader: Reader, skip: int) -> Window:
        """Return the window of the page after `skip` posts."""
        if not skip:
            return Window(PAGE, forward=True)
        [above] = self.authors.newest(reader.followed, 1, skip - 1)
        return Window(PAGE, forward=True, high=above)


def readers(authors: Authors, followed: Sequence[int], each: int) -> list[Reader]:
    """Return readers, `each` per model and number of authors. Readers of all models follow the same authors."""
    chance, ids = random.Random(2), itertools.count()
    found = []
    for count in followed:
        for _ in range(each):
            chosen = chance.sample(range(authors.count), count)
            found += [Reader(FIRST_VIEWER + next(ids) * STEP, model, chosen) for model in MODELS]
    return found


def write_follows(client: Any, viewer: int, follows: dict[int, int]) -> None:
    """Write the follows of a viewer, on both sides."""
    with client.pipeline(transaction=False) as pipeline:
        pipeline.zadd(keys.following(viewer), follows)
        for author, number in follows.items():
            pipeline.zadd(keys.followers(author), {viewer: number})
        pipeline.execute()


@dataclass(slots=True)
class Variant:
    """One repeated read, and its results."""

    label: tuple[Cell, ...]
    read: Callable[[], Awaitable[object]]
    before: Callable[[], Awaitable[object]]
    noted: Latencies = field(default_factory=Latencies)
    trips: int = 0


async def alternate(graph: Graph, variants: Sequence[Variant], reads: int, budget: float, piece: int = 5) -> None:
    """Run all variants in turn, a few reads each, until each one has its number of reads or has used up its seconds."""
    while running := [v for v in variants if v.noted.count < reads and sum(v.noted.durations) < budget]:
        for variant in running:
            for _ in range(piece):
                await variant.before()
                trips = graph.store.round_trips
                await variant.noted.time(variant.read)
                variant.trips += graph.store.round_trips - trips


def figures(variant: Variant) -> list[Cell]:
    """Return the figures of a variant: reads, p50, p99, CPU time, round trips."""
    noted = variant.noted
    return [noted.count, noted.p50, noted.p99, noted.cpu_ms, variant.trips / noted.count]


async def by_model(library: Library, reads: int, budget: float) -> Table:
    """Measure the first page, by model and number of followed authors."""
    groups: dict[tuple[int, str], list[Reader]] = {}
    for reader in library.readers:
        groups.setdefault((len(reader.followed), reader.model), []).append(reader)
    variants = [
        page_variant(library, (followed, model, len(some[0].marked)), some)
        for (followed, model), some in groups.items()
    ]
    await alternate(library.graph, variants, reads, budget)
    push = {variant.label[0]: variant.noted.p50 for variant in variants if variant.label[1] == "push"}
    rows = [[*v.label, *figures(v), v.noted.p50 / push[v.label[0]]] for v in variants]
    return Table("models", "Home page by timeline mode and number of followed authors", COLUMNS, rows, NOTE)


def page_variant(library: Library, label: tuple[Cell, ...], some: Sequence[Reader], skip: int = 0) -> Variant:
    """Return the variant that reads one page per reader in turn, after deleting the cache of a hibernated reader."""
    windows = {reader.id: library.window(reader, skip) for reader in some}
    turns = itertools.cycle(some)
    now: list[Reader] = []

    async def choose() -> None:
        now[:] = [next(turns)]
        await library.graph.timelines.wait_for_rebuilds()
        if now[0].model == "hibernated":
            library.client.unlink(keys.home(now[0].id))

    async def read() -> None:
        await library.graph.timelines.home(now[0].id, windows[now[0].id])

    return Variant(label, read, choose)


async def by_depth(
    library: Library, followed: int, depths: Sequence[int], reads: int, budget: float, hot: int | None = None
) -> Table:
    """Measure pages by depth, for readers who follow `followed` authors with `hot` posts each in the store.

    All authors publish at the same rate, so their hot posts end at the same depth.
    """
    size = library.graph.tuning.home_size
    variants = []
    for model in ("push", "hybrid", "pull"):
        some = [r for r in library.readers if r.model == model and len(r.followed) == followed]
        for skip in depths:
            where = "in the cache" if skip + PAGE < size else "below the cache"
            if hot is not None and skip + PAGE >= hot * followed:
                where = "in the archive"
            await library.check(some[0], skip)
            variants.append(page_variant(library, (skip, where, model), some, skip))
    await alternate(library.graph, variants, reads, budget)
    rows = [[*variant.label, *figures(variant)] for variant in variants]
    note = DEPTH_NOTE.format(f"{followed:,}", size)
    if hot is None:
        return Table("depth", "Home page by depth", DEPTH_COLUMNS, rows, note)
    note += f" The store holds the newest {hot} posts of each author, an SQLite archive the others."
    return Table("archive", "Home page by depth, including the archive", DEPTH_COLUMNS, rows, note)


async def rebuilds(library: Library, times: int) -> Table:
    """Measure the first read of a hibernated viewer, until the answer and until the cache is rebuilt."""
    rows: list[list[Cell]] = []
    some = [reader for reader in library.readers if reader.model == "hibernated"]
    for followed in sorted({len(reader.followed) for reader in some}):
        turns = itertools.cycle([reader for reader in some if len(reader.followed) == followed])
        answered, settled = Latencies(), Latencies()
        for _ in range(times):
            reader = next(turns)
            library.client.unlink(keys.home(reader.id))
            start, cpu = time.perf_counter(), time.process_time()
            await library.graph.timelines.home(reader.id, Window(PAGE, forward=True))
            answered.durations.append(time.perf_counter() - start)
            await library.graph.timelines.wait_for_rebuilds()
            settled.durations.append(time.perf_counter() - start)
            settled.cpu += time.process_time() - cpu
            assert library.client.zscore(keys.home(reader.id), "f") is not None, "the cache was not rebuilt"
        rows.append([followed, times, answered.p50, settled.p50, settled.percentile(1), settled.cpu_ms])
    columns = ("followed", "runs", "response p50 ms", "rebuilt p50 ms", "rebuilt max ms", "process CPU ms")
    note = (
        "One read without a cache; the cache is rebuilt after the response. All times are from the start of the "
        "request."
    )
    return Table("rebuild", "Rebuilding a cache", columns, rows, note)
