"""A small world with posts that are due to move to the archive, and the checks of its state."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from redis.asyncio import Redis
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncConnection

from graph import Graph, keys
from graph.archive.archive import Archive
from graph.archive.statements import FLOORS, POSTS
from graph.model import MAX_NUMBER
from graph.projections.mode import Mode
from tests.conftest import CHEAP
from tests.support.graph_worlds import befriend, cached, counts_of, home, home_upwards, own, people, posts
from tests.support.stores import HookedStore

T = TypeVar("T")
Action = Callable[[], Awaitable[Any]]


HOT, BATCH = 3, 2


class HookedArchive(Archive):
    """A real archive whose transactions call a store's hooks, each with the command `("ARCHIVE", method)`."""

    def __init__(self, url: str, store: HookedStore) -> None:
        super().__init__(url)
        self._store = store
        event.listen(self.database.engine.sync_engine, "connect", disable_sync)

    async def _transaction(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        command = [("ARCHIVE", work.__qualname__.split(".")[1])]
        for hook in list(self._store.before):
            await hook(command)
        result = await super()._transaction(work)
        for hook in list(self._store.after):
            await hook(command)
        return result


def disable_sync(connection: Any, record: Any) -> None:
    """Let SQLite skip syncing to disk: these tests simulate crashes of processes, not of the machine."""
    connection.execute("PRAGMA synchronous = OFF").close()
    connection.execute("PRAGMA journal_mode = WAL").close()
    record.info["durable"] = True  # otherwise the archive enables syncing restore


class Meanwhile:
    """Runs an action once, before the n-th call that a process makes to the store or the archive."""

    def __init__(self, process: Graph, call: int, action: Action) -> None:
        assert isinstance(process.store, HookedStore)
        self.happened = False
        self._left = call
        self._deed = action
        process.store.before.append(self._hook)

    async def _hook(self, _: Sequence[Any]) -> None:
        self._left -= 1
        if self._left == -1:
            self.happened = True
            await self._deed()


@dataclass
class ArchiveWorld:
    """A world in which alice follows bob and carol and has a home cache, and two of bob's posts are due to move.

    carol's hot posts are older than bob's posts. Each process has its own connections to the same store and archive.
    """

    url: str
    rows: Path
    raw: Redis
    processes: list[Graph] = field(default_factory=list)
    posts: dict[int, list[int]] = field(default_factory=dict)
    snapshot: list[tuple[str, int, Any]] = field(default_factory=list)
    initial_posts: dict[int, list[int]] = field(default_factory=dict)

    async def begin(self) -> "ArchiveWorld":
        """Create the world, and take a snapshot for `restore`."""
        self.graph = self.process()
        self.alice, self.bob, self.carol = await people(self.graph, "alice", "bob", "carol")
        await befriend(self.graph, self.alice, self.bob, self.carol)
        await self.publish(self.carol, 3)
        await self.publish(self.bob, HOT + BATCH)
        await self.graph.worker().drain()
        await cached(self.graph, self.alice)
        await archive_of(self.graph).migrate()
        async with Redis.from_url(self.url) as bytes_:
            self.snapshot = [(key, await bytes_.pttl(key), await bytes_.dump(key)) async for key in bytes_.scan_iter()]
        self.initial_posts = {author: list(posts) for author, posts in self.posts.items()}
        return self

    def process(self, *, single_slot: bool = True, **tuning: Any) -> Graph:
        """Open a graph on this world, as another process would."""
        store = HookedStore(self.url, single_slot=single_slot)
        options: dict[str, Any] = {"home_size": 7, "hot_posts": HOT, "archive_batch": BATCH}
        options = options | {"tombstones_live": timedelta(0)} | tuning
        graph = Graph(store, replace(CHEAP, **options), HookedArchive(f"sqlite:///{self.rows}", store))
        self.processes.append(graph)
        return graph

    async def restore(self) -> Graph:
        """Restore the snapshot, and return a new process."""
        await self.close()
        self.graph = self.process()
        await self.raw.flushall()
        async with Redis.from_url(self.url) as bytes_, bytes_.pipeline(transaction=False) as pipeline:
            for key, ttl, value in self.snapshot:
                pipeline.restore(key, max(0, ttl), value)
            await pipeline.execute()
        await self.forget_rows()
        self.posts = {author: list(posts) for author, posts in self.initial_posts.items()}
        return self.process()

    async def forget_rows(self) -> None:
        """Delete all rows and floors of the archive."""

        async def work(connection: AsyncConnection) -> None:
            for table in (POSTS, FLOORS):
                await connection.execute(table.delete())

        await archive_of(self.graph).database.transaction(work)

    async def close(self) -> None:
        """Close all processes."""
        for graph in self.processes:
            assert isinstance(graph.store, HookedStore)
            graph.store.before.clear()
            graph.store.after.clear()
            await graph.close()
        self.processes.clear()

    async def publish(self, author: int, count: int, *, drain: bool = False) -> None:
        """Publish posts."""
        self.posts.setdefault(author, []).extend(await posts(self.graph, author, *map(str, range(count))))
        if drain:
            await self.graph.worker().drain()

    async def delete(self, author: int, *indices: int, drain: bool = False) -> None:
        """Delete posts of an author by index, the oldest first."""
        for post in [self.posts[author][index] for index in indices]:
            self.posts[author].remove(post)
            await self.graph.posts.delete(author, post)
        if drain:
            await self.graph.worker().drain()

    async def project_again(self) -> None:
        """Project the whole log again."""
        events = [event async for event in self.graph.log.replay(0, MAX_NUMBER)]
        await self.graph.projections.project(events, Mode.WORKER)

    def home(self) -> list[int]:
        """Return the expected home timeline of alice."""
        return sorted((post for author in (self.bob, self.carol) for post in self.posts[author]), reverse=True)

    async def check_pages(self, graph: Graph | None = None) -> None:
        """Check alice's home timeline, all users' timelines in both directions, and the look-up of every post."""
        graph = graph or self.graph
        assert await home(graph, self.alice, 3) == self.home()
        assert await home_upwards(graph, self.alice, 4) == self.home()
        for author, written in self.posts.items():
            assert await own(graph, author, 3) == written[::-1]
            assert await own(graph, author, 3, forward=False) == written[::-1]
            assert [post and post.id for post in await graph.posts.get_many(written)] == written

    async def rows_of(self, author: int) -> list[int]:
        """Return an author's archived posts."""
        return sorted(await archive_of(self.graph).ids(author, 0, MAX_NUMBER))

    async def hot_of(self, author: int) -> list[int]:
        """Return an author's hot posts."""
        return [int(str(post)) for post in await self.raw.zrange(keys.posts(author), 0, -1) if post != "f"]

    async def check_final_state(self) -> None:
        """Run the worker and the archiver, then check that hot and archived posts are exactly the live posts."""
        await self.graph.worker(timedelta(0)).drain()
        assert self.graph.archiver is not None
        await self.graph.archiver.work()
        for author, written in self.posts.items():
            rows, hot = await self.rows_of(author), await self.hot_of(author)
            assert rows + hot == written, "a post is missing, in both places, or not deleted"
            assert len(hot) < HOT + BATCH, "too many posts are hot"
            floor = int(await self.raw.zscore(keys.posts(author), "f") or 0)
            assert max(rows, default=0) <= floor < min(hot, default=MAX_NUMBER)
            left = [post for post in rows if await self.raw.exists(keys.post(post))]
            assert left == [], "archived posts have records"
            [counts] = await counts_of(self.graph, [author])
            assert counts.posts == len(written)
        assert not await self.raw.exists(keys.ARCHIVABLE, keys.DELETED)
        await self.check_pages()
        await self.raw.delete(keys.home(self.alice))
        await cached(self.graph, self.alice)
        assert await home(self.graph, self.alice, 4) == self.home()


def archive_of(graph: Graph) -> Archive:
    """Return the archive of a graph that has one."""
    assert graph.archive is not None
    return graph.archive


@asynccontextmanager
async def archive_world(url: str, folder: Path) -> AsyncIterator[ArchiveWorld]:
    """Create the world in an empty store and an empty archive."""
    async with Redis.from_url(url, decode_responses=True) as raw:
        world = ArchiveWorld(url, folder / "archive.sqlite", raw)
        try:
            yield await world.begin()
        finally:
            await world.close()
