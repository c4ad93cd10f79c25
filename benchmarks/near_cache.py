"""The near cache of records: `python -m benchmarks.near_cache [--quick] [--json FILE]`.

Viewers read home pages from a process without a near cache and from a process with one, in alternating slices. The
popularity of authors and posts and the activity of viewers follow Zipf's law. Between slices, other users publish and
like posts, so that the store invalidates values in the near cache. Then the same is measured on a private cluster of
three primaries and three replicas.
"""

import asyncio
import itertools
import random
import statistics
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from graphql import parse

from benchmarks.command import Benchmark
from benchmarks.conversations import EXTENDED
from benchmarks.peers.queries import HOME
from benchmarks.report import Cell, Table
from benchmarks.stores import Meter, archive_url, memory, private_store, raw
from executor import Executor
from graph import Graph, keys
from graph.archive.archive import Archive
from graph.log.events import EventBody, Followed, Liked, PostPublished, UserCreated
from graph.model import Credentials
from graph.paging import Window
from graph.projections.mode import Mode
from graph.store.store import Store
from resolvers.context import Context, Viewer
from schema import schema
from server.local_cluster import PRIMARIES, LocalCluster
from tests.resolvers.conftest import issue_token
from tests.support.graph_worlds import append_events

CACHED = 50_000
EXPONENT = 1.0
BATCH = 1000
AT_ONCE = 8
TITLE = "Home pages with and without a near cache"
PAGES = ("home page", "with conversations")
COLUMNS = (
    *("query", "writes per page", "pages", "hits", "commands without", "with", "store CPU ms without", "with"),
    *("ratio", "our CPU ms without", "with", "ratio"),
)
NOTE = (
    "The first page of 30 posts from the home cache, with the session check, eight at once, without HTTP. CPU times "
    "are medians per page; ratios are medians of alternating slices. A write is a like or, in one of ten cases, a new "
    "post; its own cost is not part of the figures."
)
COST_COLUMNS = ("processes that track keys", "store CPU us per like", "ratio", "keys tracked", "store's bytes per key")
COST_NOTE = (
    "Each process has read the records of all users and posts before the likes, which are of different posts, so that "
    "the store tells each process of each like. Ratios are medians over rounds; each round measures the "
    "rows in a different order. The bytes include the connections of the processes."
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of the world, pages per slice, slices per process, and writes per page."""

    authors: int
    viewers: int
    followed: int
    posts: int
    pages: int
    slices: int
    writes: Sequence[float]
    trackers: Sequence[int]
    likes: int


def zipf(rng: random.Random, items: Sequence[int], count: int) -> list[int]:
    """Return random items, the first ones most often."""
    weights = list(accumulate(1 / (rank + 1) ** EXPONENT for rank in range(len(items))))
    return rng.choices(items, cum_weights=weights, k=count)


class Nodes:
    """The primaries of a cluster, as one store whose CPU time is measured."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._nodes = cluster.nodes[:PRIMARIES]

    def info(self, section: str) -> dict[str, float]:
        """Return the sums of CPU times."""
        found = [node.run("INFO", section) for node in self._nodes]
        return {name: sum(float(each[name]) for each in found) for name in ("used_cpu_user", "used_cpu_sys")}


class World:
    """Users, follows and posts, and further writes."""

    def __init__(self, graph: Graph, rng: random.Random) -> None:
        self.graph = graph
        self.rng = rng
        self.authors: list[int] = []
        self.viewers: list[int] = []
        self.posts: list[int] = []

    async def write(self, bodies: Sequence[EventBody]) -> list[int]:
        """Append events, project them, and return their numbers."""
        numbers = []
        for start in range(0, len(bodies), BATCH):
            events = await append_events(self.graph, bodies[start : start + BATCH])
            await self.graph.projections.project(events, Mode.WORKER)
            numbers += [event.number for event in events]
        return numbers

    async def build(self, sizes: Sizes) -> None:
        """Write the world, and warm the home caches of all viewers."""
        names = [f"user{place}" for place in range(sizes.authors + sizes.viewers)]
        users = await self.write([UserCreated(name, name.title(), name) for name in names])
        self.authors, self.viewers = users[: sizes.authors], users[sizes.authors :]
        records = zip(users, names, strict=True)
        await self.graph.store.send(
            [("HSET", keys.user(u), "id", u, "login", name, "name", name) for u, name in records]
        )
        await self.write([Followed(author, self.authors[0]) for author in self.authors[1:]])
        for viewer in self.viewers:
            followed = set(zipf(self.rng, self.authors, 4 * sizes.followed))
            await self.write([Followed(viewer, author) for author in sorted(followed)[: sizes.followed]])
        for _ in range(sizes.posts):
            authors = self.rng.sample(self.authors, len(self.authors))
            self.posts += await self.write([PostPublished(author, "a post about this and that") for author in authors])
        for viewer in self.viewers:
            await self.graph.timelines.home(viewer, Window(1, forward=True))
            await self.graph.timelines.wait_for_rebuilds()

    async def change(self, writes: int) -> None:
        """Like and publish posts."""
        bodies: list[EventBody] = []
        for author, post in zip(zipf(self.rng, self.authors, writes), self.newest(writes), strict=True):
            if self.rng.random() < 0.1:
                bodies.append(PostPublished(author, "a new post"))
            else:
                bodies.append(Liked(self.rng.choice(self.viewers), post, author))
        numbers = await self.write(bodies)
        self.posts += [n for n, body in zip(numbers, bodies, strict=True) if isinstance(body, PostPublished)]

    async def like(self, posts: Sequence[int]) -> None:
        """Append likes of posts, as if the first author had written all of them."""
        await self.write([Liked(self.rng.choice(self.viewers), post, self.authors[0]) for post in posts])

    def newest(self, count: int) -> list[int]:
        """Return random posts, the newest most often."""
        return zipf(self.rng, self.posts[: -BATCH - 1 : -1], count)


class Process:
    """A process that serves pages, with its own connections."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.executor = Executor(schema._schema)
        self.sessions: dict[int, Credentials] = {}

    async def read(self, document: Any, viewer: int) -> None:
        """Read a page as an endpoint does: with the session check in the first round trip."""
        session = self.sessions[viewer]
        checking = self.graph.sessions.is_live(viewer, session.id)
        context = Context(self.graph, Viewer(viewer, session.id, session.expires_at), issue_token)
        result = await self.executor.execute(document, context_value=context)
        if result.errors or not await checking:
            raise AssertionError(str(result.errors))


@dataclass(slots=True)
class Slice:
    """The costs per page in one slice."""

    store: float
    here: float
    commands: float
    hits: float


async def slice_of(process: Process, document: Any, viewers: Sequence[int], meter: Meter) -> Slice:
    """Read pages and return their cost."""
    store, near = process.graph.store, process.graph.store.near
    commands, hits, misses = store.commands, near.hits if near else 0, near.misses if near else 0
    meter.start()
    for start in range(0, len(viewers), AT_ONCE):
        await asyncio.gather(*(process.read(document, viewer) for viewer in viewers[start : start + AT_ONCE]))
    spent, pages = meter.stop(), len(viewers)
    found, read = (near.hits - hits, near.misses - misses) if near else (0, 1)
    each = 1000 / pages
    return Slice(spent.store * each, spent.here * each, (store.commands - commands) / pages, found / (found + read))


async def compare(
    world: World, plain: Process, near: Process, name: str, document: Any, writes: float, sizes: Sizes, meter: Meter
) -> list[Cell]:
    """Return the row of one query."""
    slices: dict[Process, list[Slice]] = {plain: [], near: []}
    for number in range(sizes.slices + 1):
        for process in (plain, near) if number % 2 else (near, plain):
            await world.change(round(writes * sizes.pages))
            await plain.graph.log.watermark()
            await near.graph.log.watermark()
            viewers = zipf(world.rng, world.viewers, sizes.pages)
            measured = await slice_of(process, document, viewers, meter)
            if number:
                slices[process].append(measured)

    def median(process: Process, part: str) -> float:
        return float(statistics.median(getattr(each, part) for each in slices[process]))

    def ratio(part: str) -> float:
        pairs = zip(slices[near], slices[plain], strict=True)
        return float(statistics.median(getattr(one, part) / max(1e-9, getattr(other, part)) for one, other in pairs))

    return [
        *(name, writes, sizes.slices * sizes.pages, median(near, "hits")),
        *(median(plain, "commands"), median(near, "commands"), median(plain, "store"), median(near, "store")),
        *(ratio("store"), median(plain, "here"), median(near, "here"), ratio("here")),
    ]


async def cost_of_writes(world: World, open_near: Any, client: Any, sizes: Sizes) -> Table:
    """Measure likes while some processes track all users and posts, in alternating rounds."""
    costs: dict[int, list[tuple[float, int, float]]] = {count: [] for count in sizes.trackers}
    for number, place in itertools.product(range(sizes.slices), range(len(sizes.trackers))):
        count = sizes.trackers[(number + place) % len(sizes.trackers)]
        before = memory(client)
        trackers = [await open_near() for _ in range(count)]
        for graph in trackers:
            await know_everything(graph, world)
        tracked = int(client.info("stats")["tracking_total_keys"])
        held = (memory(client) - before) / tracked if count else 0
        meter = Meter(client)
        meter.start()
        await world.like(world.rng.sample(world.posts, sizes.likes))
        costs[count].append((1e6 * meter.stop().store / sizes.likes, tracked, held))
        if trackers:
            empty_table(client)
        for graph in trackers:
            await graph.close()
    rows: list[list[Cell]] = []
    for count, rounds in costs.items():
        cost, tracked, held = (statistics.median(part) for part in zip(*rounds, strict=True))
        pairs = zip(rounds, costs[sizes.trackers[0]], strict=True)
        rows.append([count, cost, statistics.median(one[0] / two[0] for one, two in pairs), tracked, held])
    return Table("near-cache-writes", "Writers beside processes that track keys", COST_COLUMNS, rows, COST_NOTE)


def empty_table(client: Any) -> None:
    """Empty the store's table of tracked keys, which keeps the keys of closed connections."""
    [limit] = client.config_get("tracking-table-max-keys").values()
    client.config_set("tracking-table-max-keys", 1)
    while int(client.info("stats")["tracking_total_keys"]) > 1:
        client.ping()  # with each command, the server drops some keys
    client.config_set("tracking-table-max-keys", limit)


async def know_everything(graph: Graph, world: World) -> None:
    """Let a process read all users and posts, so that the store tracks them."""
    await graph.log.watermark()
    moment = graph.store.begin()
    await graph.log.watermark()
    await graph.users.get_many(world.authors, moment)
    await graph.posts.get_many(graph.visibility.of(None, moment), world.posts)


async def pages(graphs: Sequence[Graph], name: str, title: str, client: Any, sizes: Sizes) -> tuple[World, Table]:
    """Build a world with the first graph. Compare pages of the second and the third, which has a near cache."""
    world = World(graphs[0], random.Random(7))
    await world.build(sizes)
    plain, near = Process(graphs[1]), Process(graphs[2])
    for viewer in world.viewers:
        plain.sessions[viewer] = near.sessions[viewer] = await world.graph.sessions.start(viewer)
    rows = []
    for page, text in zip(PAGES, (HOME, EXTENDED), strict=True):
        for writes in sizes.writes:
            row = await compare(world, plain, near, page, parse(text), writes, sizes, Meter(client))
            rows.append(row)
    return world, Table(name, title, COLUMNS, rows, NOTE)


async def measure(sizes: Sizes) -> AsyncIterator[Table]:
    """Measure pages, then the cost for writers, then pages on a cluster."""
    with private_store() as url, raw(url) as client:
        open_with = partial(open_process, url, archive_url(url))
        graphs = [await open_with(cached) for cached in (0, 0, CACHED)]
        try:
            world, table = await pages(graphs, "near-cache", TITLE, client, sizes)
            yield table
            yield await cost_of_writes(world, partial(open_with, CACHED), client, sizes)
        finally:
            await asyncio.gather(*(graph.close() for graph in graphs))
    with tempfile.TemporaryDirectory(prefix="fanline-benchmark-") as folder, LocalCluster(Path(folder)) as cluster:
        for node in cluster.nodes:
            node.run("CONFIG", "SET", "appendonly", "no")
        archive = f"sqlite:///{folder}/archive.sqlite"
        graphs = [await open_process(cluster.url, archive, cached) for cached in (0, 0, CACHED)]
        try:
            _, table = await pages(graphs, "near-cache-cluster", f"{TITLE}, on a cluster", Nodes(cluster), sizes)
            yield table
        finally:
            await asyncio.gather(*(graph.close() for graph in graphs))


async def open_process(url: str, archive: str, cached: int) -> Graph:
    """Open a graph with a near cache of this size."""
    return await Graph.open(url, Archive(archive), None, partial(Store, near_cache=cached))


BENCHMARK = Benchmark(
    "Compare home pages with and without a near cache of records.",
    {
        "full": Sizes(2000, 300, 80, 4, 200, 10, (0, 0.1, 1), (0, 1, 4, 16), 500),
        "quick": Sizes(400, 60, 40, 3, 60, 4, (0, 0.1, 1), (0, 1, 4), 200),
        "tiny": Sizes(20, 4, 8, 3, 4, 2, (0, 1), (0, 1), 10),
    },
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
