"""A small world whose oldest posts are due to move into the archive, again and again, and what must hold in it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from redis.asyncio import Redis
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncConnection

from graph import Graph, Tuning, keys
from graph.archive.archive import Archive
from graph.archive.statements import FLOORS, POSTS
from graph.model import MAX_NUMBER
from graph.projections.mode import Mode
from tests.support.graph_worlds import befriend, cached, counts_of, home, home_upwards, own, people, posts
from tests.support.stores import HookedStore

T = TypeVar("T")
Deed = Callable[[], Awaitable[Any]]

CHEAP = {"argon2_time_cost": 1, "argon2_memory_kib": 8, "argon2_parallelism": 1}
HOT, BATCH = 3, 2


class HookedArchive(Archive):
    """A real archive whose transactions pass a store's hooks, each as the command `("ARCHIVE", method)`."""

    def __init__(self, url: str, store: HookedStore) -> None:
        super().__init__(url)
        self._store = store
        event.listen(self.database.engine.sync_engine, "connect", in_memory_of_the_system)

    async def _transaction(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        command = [("ARCHIVE", work.__qualname__.split(".")[1])]
        for hook in list(self._store.before):
            await hook(command)
        result = await super()._transaction(work)
        for hook in list(self._store.after):
            await hook(command)
        return result


def in_memory_of_the_system(connection: Any, record: Any) -> None:
    """Let SQLite write nothing through to the disk: these tests end processes, not the machine."""
    connection.execute("PRAGMA synchronous = OFF").close()
    connection.execute("PRAGMA journal_mode = WAL").close()
    record.info["durable"] = True  # so that the archive does not switch it on again


class Meanwhile:
    """Does something once, right before the n-th call that a process makes to the store or the archive."""

    def __init__(self, process: Graph, call: int, deed: Deed) -> None:
        assert isinstance(process.store, HookedStore)
        self.happened = False
        self._left = call
        self._deed = deed
        process.store.before.append(self._hook)

    async def _hook(self, _: Sequence[Any]) -> None:
        self._left -= 1
        if self._left == -1:
            self.happened = True
            await self._deed()


@dataclass
class Moving:
    """alice follows bob and carol, and has a cache; bob has written so much that two of his posts are due to move.

    carol's posts are older than bob's, so that his archived ones lie between those that are hot. Each process has a
    store and an archive of its own to the same data.
    """

    url: str
    rows: Path
    raw: Redis
    processes: list[Graph] = field(default_factory=list)
    posts: dict[int, list[int]] = field(default_factory=dict)
    picture: list[tuple[str, int, Any]] = field(default_factory=list)
    began: dict[int, list[int]] = field(default_factory=dict)

    async def begin(self) -> "Moving":
        """Make the world, and remember it for `again`."""
        self.graph = self.process()
        self.alice, self.bob, self.carol = await people(self.graph, "alice", "bob", "carol")
        await befriend(self.graph, self.alice, self.bob, self.carol)
        await self.publish(self.carol, 3)
        await self.publish(self.bob, HOT + BATCH)
        await self.graph.worker().drain()
        await cached(self.graph, self.alice)
        await archive_of(self.graph).migrate()
        async with Redis.from_url(self.url) as bytes_:
            self.picture = [(key, await bytes_.pttl(key), await bytes_.dump(key)) async for key in bytes_.scan_iter()]
        self.began = {author: list(posts) for author, posts in self.posts.items()}
        return self

    def process(self, *, single_slot: bool = True, **tuning: Any) -> Graph:
        """Open a graph on this world, as another process would: on a cluster, or on one server."""
        store = HookedStore(self.url, single_slot=single_slot)
        options = {"home_size": 7, "hot_posts": HOT, "archive_batch": BATCH, "tombstones_live": timedelta(0)}
        graph = Graph(store, Tuning(**CHEAP | options | tuning), HookedArchive(f"sqlite:///{self.rows}", store))
        self.processes.append(graph)
        return graph

    async def again(self) -> Graph:
        """Let everything be as it was in the beginning, and give a new process."""
        await self.close()
        self.graph = self.process()
        await self.raw.flushall()
        async with Redis.from_url(self.url) as bytes_, bytes_.pipeline(transaction=False) as pipeline:
            for key, ttl, value in self.picture:
                pipeline.restore(key, max(0, ttl), value)
            await pipeline.execute()
        await self.forget_rows()
        self.posts = {author: list(posts) for author, posts in self.began.items()}
        return self.process()

    async def forget_rows(self) -> None:
        """Empty the archive."""

        async def work(connection: AsyncConnection) -> None:
            for table in (POSTS, FLOORS):
                await connection.execute(table.delete())

        await archive_of(self.graph).database.transaction(work)

    async def close(self) -> None:
        """Close all processes."""
        for graph in self.processes:
            graph.store.before.clear()
            graph.store.after.clear()
            await graph.close()
        self.processes.clear()

    async def publish(self, author: int, count: int, *, drain: bool = False) -> None:
        """Somebody writes posts."""
        self.posts.setdefault(author, []).extend(await posts(self.graph, author, *map(str, range(count))))
        if drain:
            await self.graph.worker().drain()

    async def delete(self, author: int, *indices: int, drain: bool = False) -> None:
        """Somebody deletes some of their posts, counted from the oldest."""
        for post in [self.posts[author][index] for index in indices]:
            self.posts[author].remove(post)
            await self.graph.posts.delete(author, post)
        if drain:
            await self.graph.worker().drain()

    async def deliver_again(self) -> None:
        """Project the whole log once more."""
        events = [event async for event in self.graph.log.replay(0, MAX_NUMBER)]
        await self.graph.projections.project(events, Mode.WORKER)

    def home(self) -> list[int]:
        """Give alice's home timeline as it is defined."""
        return sorted((post for author in (self.bob, self.carol) for post in self.posts[author]), reverse=True)

    async def check_pages(self, graph: Graph | None = None) -> None:
        """Check alice's home timeline and everybody's own, either way, and every look-up."""
        graph = graph or self.graph
        assert await home(graph, self.alice, 3) == self.home()
        assert await home_upwards(graph, self.alice, 4) == self.home()
        for author, written in self.posts.items():
            assert await own(graph, author, 3) == written[::-1]
            assert await own(graph, author, 3, forward=False) == written[::-1]
            assert [post and post.id for post in await graph.posts.get_many(written)] == written

    async def rows_of(self, author: int) -> list[int]:
        """Give an author's archived posts."""
        return sorted(await archive_of(self.graph).ids(author, 0, MAX_NUMBER))

    async def hot_of(self, author: int) -> list[int]:
        """Give an author's hot posts."""
        return [int(post) for post in await self.raw.zrange(keys.posts(author), 0, -1) if post != "f"]

    async def check_rest(self) -> None:
        """Let everything be done, by processes that live; then check that hot and archived posts are the living."""
        await self.graph.worker(timedelta(0)).drain()
        assert self.graph.archiver is not None
        await self.graph.archiver.work()
        for author, written in self.posts.items():
            rows, hot = await self.rows_of(author), await self.hot_of(author)
            assert rows + hot == written, "a post is lost, or in both, or not deleted"
            assert len(hot) < HOT + BATCH, "more posts are hot than should be"
            floor = int(await self.raw.zscore(keys.posts(author), "f") or 0)
            assert max(rows, default=0) <= floor < min(hot, default=MAX_NUMBER)
            left = [post for post in rows if await self.raw.exists(keys.post(post))]
            assert left == [], "records of archived posts are left"
            [counts] = await counts_of(self.graph, [author])
            assert counts.posts == len(written)
        assert not await self.raw.exists(keys.ARCHIVABLE, keys.DELETED)
        await self.check_pages()
        await self.raw.delete(keys.home(self.alice))
        await cached(self.graph, self.alice)
        assert await home(self.graph, self.alice, 4) == self.home()


def archive_of(graph: Graph) -> Archive:
    """Give the archive of a graph that has one."""
    assert graph.archive is not None
    return graph.archive


@asynccontextmanager
async def moving(url: str, folder: Path) -> AsyncIterator[Moving]:
    """Make the world in an empty store and an empty archive."""
    async with Redis.from_url(url, decode_responses=True) as raw:
        world = Moving(url, folder / "archive.sqlite", raw)
        try:
            yield await world.begin()
        finally:
            await world.close()
