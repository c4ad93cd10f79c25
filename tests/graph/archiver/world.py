"""A small world with events to archive, and checks of its state."""

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from redis.asyncio import Redis
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from graph import Graph, keys
from graph.archive.archive import Archive
from graph.archive.rows import POST, REDACTED, EventRow, same_event, stored
from graph.archiver.batch import row_of
from graph.errors import ArchiveUnavailable, StoreUnavailable
from graph.log.numbers import entry_id
from graph.model import MAX_NUMBER
from graph.projections.mode import Mode
from graph.store.store import Store
from graph.visibility.views import SYSTEM
from tests.conftest import CHEAP
from tests.support.graph_worlds import befriend, cached, counts_of, home, home_upwards, own, people, posts
from tests.support.graphs import bound_archive, execute_at_once
from tests.support.raw import open_raw
from tests.support.stores import HookedStore

T = TypeVar("T")
Action = Callable[[], Awaitable[Any]]

HOT, SLACK = 3, 2
FULL = HOT + SLACK + 1
"""The number of hot posts at which a timeline is cut."""


class HookedArchive(Archive):
    """A real archive whose transactions call a store's hooks, each with the command `("ARCHIVE", method)`."""

    def __init__(self, url: str, store: HookedStore) -> None:
        super().__init__(url)
        self._store = store
        execute_at_once(self)

    async def _transaction(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        command = [("ARCHIVE", work.__qualname__.split(".")[1])]
        for hook in list(self._store.before):
            await hook(command)
        result = await super()._transaction(work)
        for hook in list(self._store.after):
            await hook(command)
        return result


class Meanwhile:
    """Runs an action once, before the n-th call that a process makes to the store or the archive."""

    def __init__(self, process: Graph, call: int, action: Action) -> None:
        assert isinstance(process.store, HookedStore)
        self.happened = False
        self._left = call
        self._action = action
        process.store.before.append(self._hook)

    async def _hook(self, _: Sequence[Any]) -> None:
        self._left -= 1
        if self._left == -1:
            self.happened = True
            await self._action()


class Outage:
    """Makes the n-th call that a process makes to the store or the archive fail, before or after it is applied."""

    def __init__(self, store: Store, call: int, *, after: bool) -> None:
        assert isinstance(store, HookedStore)
        self.happened = False
        self._left = call
        self._hooks = store.after if after else store.before
        self._hooks.append(self._hook)

    async def _hook(self, commands: Sequence[Any]) -> None:
        self._left -= 1
        if self._left == -1:
            self.happened = True
            raise (ArchiveUnavailable if commands[0][0] == "ARCHIVE" else StoreUnavailable)("a fault of the test")

    def end(self) -> None:
        """Remove all faults: later calls succeed."""
        self._hooks.remove(self._hook)


@dataclass
class ArchiveWorld:
    """A world in which alice follows bob and carol and has a home cache, and bob's timeline is due to be cut.

    Everything is projected and nothing is archived. carol's posts are older than bob's. Each process has its own
    connections to the same store and archive.
    """

    url: str
    file: Path
    raw: Redis
    processes: list[Graph] = field(default_factory=list)
    posts: dict[int, list[int]] = field(default_factory=dict)
    deleted: set[int] = field(default_factory=set)
    saved: tuple[list[tuple[str, int, Any]], dict[int, list[int]], set[int]] = ([], {}, set())

    async def begin(self) -> "ArchiveWorld":
        """Create the world, and save it for `restore`."""
        self.file.write_bytes(bound_archive()[0])
        self.graph = self.process()
        self.alice, self.bob, self.carol = await people(self.graph, "alice", "bob", "carol")
        await befriend(self.graph, self.alice, self.bob, self.carol)
        await self.publish(self.carol, 3)
        await self.publish(self.bob, FULL + 1)
        await self.graph.worker().drain()
        await cached(self.graph, self.alice)
        await self.save()
        return self

    def process(self, *, single_slot: bool = True, **tuning: Any) -> Graph:
        """Open a graph on this world, like another process."""
        store = HookedStore(self.url, single_slot=single_slot)
        options: dict[str, Any] = {"home_size": 7, "hot_posts": HOT, "hot_slack": SLACK, "log_retention": timedelta(0)}
        options = options | {"tombstones_live": timedelta(0)} | tuning
        graph = Graph(store, HookedArchive(f"sqlite:///{self.file}", store), replace(CHEAP, **options))
        self.processes.append(graph)
        return graph

    async def save(self) -> None:
        """Save the state of the store and of the archive for `restore`. All processes end; `graph` is a new one."""
        await self.backup()
        dumps = await dump(self.url)
        self.saved = dumps, {author: list(posts) for author, posts in self.posts.items()}, set(self.deleted)

    async def restore(self) -> Graph:
        """Restore the saved state, and return a new process. All others end; `graph` is another new one."""
        await self.restore_backup()
        dumps, posts, deleted = self.saved
        await self.raw.flushall()
        await load(self.url, dumps)
        self.posts = {author: list(written) for author, written in posts.items()}
        self.deleted = set(deleted)
        return self.process()

    async def backup(self) -> None:
        """Copy the archive. All processes end; `graph` is a new one."""
        await self.close()
        shutil.copy(self.file, self.file.with_suffix(".saved"))
        self.graph = self.process()

    async def restore_backup(self) -> None:
        """Replace the archive with its copy. All processes end; `graph` is a new one."""
        await self.close()
        for suffix in ("-wal", "-shm"):
            self.file.with_name(self.file.name + suffix).unlink(missing_ok=True)
        shutil.copy(self.file.with_suffix(".saved"), self.file)
        self.graph = self.process()

    async def close(self) -> None:
        """End all processes."""
        for graph in self.processes:
            assert isinstance(graph.store, HookedStore)
            graph.store.before.clear()
            graph.store.after.clear()
            await graph.timelines.wait_for_rebuilds()
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
            self.deleted.add(post)
            await self.graph.posts.delete(author, post)
        if drain:
            await self.graph.worker().drain()

    async def project_again(self) -> None:
        """Project the whole log again."""
        events = [event async for event in self.graph.log.replay(0, MAX_NUMBER)]
        await self.graph.projections.project(events, Mode.WORKER)

    async def archive(self, graph: Graph | None = None) -> None:
        """Project and archive everything, in a process that has just become the active archiver."""
        graph = graph or self.graph
        await graph.worker(timedelta(0)).drain()
        await self.raw.delete(keys.ARCHIVER)
        await graph.archiver.work()
        await graph.worker(timedelta(0)).drain()  # the log may have skipped the numbers of lost events

    async def sql(self, statement: str, **parameters: object) -> list[Any]:
        """Execute a statement in the archive's database, and return the rows of its result, if it has one."""

        async def work(connection: AsyncConnection) -> list[Any]:
            result = await connection.execute(text(statement), parameters)
            return [tuple(row) for row in result] if result.returns_rows else []

        return await self.graph.archive.database.transaction(work)

    async def rows(self) -> list[EventRow]:
        """Return all events in the archive."""
        return await self.graph.archive.range(0, MAX_NUMBER, 10_000)

    async def rows_of(self, author: int) -> list[int]:
        """Return an author's live posts in the archive."""
        return [row.number for row in await self.rows() if row.kind == POST and row.actor == author]

    async def hot_of(self, author: int) -> list[int]:
        """Return an author's hot posts."""
        return [int(str(post)) for post in await self.raw.zrange(keys.posts(author), 0, -1) if post != "f"]

    async def floor_of(self, author: int) -> int:
        """Return an author's archive floor."""
        return int(await self.raw.zscore(keys.posts(author), "f") or 0)

    async def watermarks(self) -> list[int]:
        """Return the store's archive watermark, the projection watermark, and the archive's own watermark."""
        watermarks = [int(mark or 0) for mark in await self.raw.mget(keys.ARCHIVED, keys.WATERMARK)]
        return [*watermarks, (await self.graph.archive.state()).watermark]

    def home(self) -> list[int]:
        """Return the expected home timeline of alice."""
        return sorted((post for author in (self.bob, self.carol) for post in self.posts[author]), reverse=True)

    async def check_pages(self, graph: Graph | None = None) -> None:
        """Check alice's home timeline, all users' timelines in both directions, and the look-up of every post."""
        graph = graph or self.graph
        await self.check_home(graph)
        for author, written in self.posts.items():
            assert await own(graph, author, 3) == written[::-1]
            assert await own(graph, author, 3, forward=False) == written[::-1]
            assert [post and post.id for post in await graph.posts.get_many(SYSTEM, written)] == written
        assert await graph.posts.get_many(SYSTEM, sorted(self.deleted)) == [None] * len(self.deleted)

    async def check_home(self, graph: Graph) -> None:
        """Check alice's home timeline in both directions."""
        assert await home(graph, self.alice, 3) == self.home()
        assert await home_upwards(graph, self.alice, 4) == self.home()

    async def check(self) -> None:
        """Archive everything, then check that the archive holds the whole log and that the hot windows are right.

        After a crash, only a scan cuts timelines that are too full, and frees records.
        """
        await self.archive()
        await self._check_log()
        for author, written in self.posts.items():
            await self._check_author(author, written)
        await self.check_pages()
        await self.graph.scan.run_pass()
        for author, written in self.posts.items():
            await self._check_author(author, written)
            records = [post for post in written if await self.raw.exists(keys.post(post))]
            hot = await self.hot_of(author)
            assert records == hot, "an archived post has a record, or a hot one has none"
            assert len(hot) < FULL, "too many posts are hot"
        assert [post for post in sorted(self.deleted) if await self.raw.hexists(keys.post(post), "author")] == []
        await self.raw.delete(keys.home(self.alice))
        await self.check_pages()
        await cached(self.graph, self.alice)
        await self.check_home(self.graph)

    async def _check_log(self) -> None:
        archived, watermark, end = await self.watermarks()
        assert watermark == end == await self.graph.log.last()
        assert await self.raw.xrange(keys.LOG, f"({entry_id(archived)}") == []
        rows = {row.number: row for row in await self.rows()}
        for entry in await self.graph.store.run("XRANGE", keys.LOG, "-", "+"):
            row = row_of(entry)
            assert row is not None
            assert same_event(rows[row.number], stored(row)), "the archive holds another event"
        assert {number for number, row in rows.items() if row.kind == REDACTED} == self.deleted

    async def _check_author(self, author: int, written: list[int]) -> None:
        floor, hot = await self.floor_of(author), await self.hot_of(author)
        assert await self.rows_of(author) == written, "a post is missing in the archive, or not deleted"
        assert hot == [post for post in written if post > floor], "a post is missing, or not deleted"
        cold = int(await self.raw.get(keys.cold(author)) or 0)
        assert cold == len(written) - len(hot), "the number of archived posts is wrong"
        [counts] = await counts_of(self.graph, [author])
        assert counts.posts == len(written)


@contextmanager
def queries_of(graph: Graph) -> Iterator[list[str]]:
    """Collect the names of the archive's methods that a process calls."""
    called: list[str] = []

    async def note(commands: Sequence[Any]) -> None:
        called.extend(command[1] for command in commands if command[0] == "ARCHIVE")

    graph.store.before.append(note)  # type: ignore[attr-defined]
    try:
        yield called
    finally:
        graph.store.before.remove(note)  # type: ignore[attr-defined]


async def dump(url: str, prefix: str = "") -> list[tuple[str, int, Any]]:
    """Return the keys of a store that begin with a prefix, with their times to live and contents."""
    async with open_raw(url, decode_responses=False) as client:
        return [(key, await client.pttl(key), await client.dump(key)) async for key in client.scan_iter(f"{prefix}*")]


async def load(url: str, dumps: Sequence[tuple[str, int, Any]]) -> None:
    """Write dumped keys into a store."""
    async with open_raw(url, decode_responses=False) as client, client.pipeline(transaction=False) as pipeline:
        for key, ttl, value in dumps:
            pipeline.restore(key, max(0, ttl), value, replace=True)
        await pipeline.execute()


@asynccontextmanager
async def archive_world(url: str, folder: Path) -> AsyncIterator[ArchiveWorld]:
    """Create the world in an empty store, with an empty archive in a folder."""
    async with open_raw(url) as raw:
        world = ArchiveWorld(url, folder / "archive.sqlite", raw)
        try:
            yield await world.begin()
        finally:
            await world.close()
