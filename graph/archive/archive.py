"""The archive: an SQL database of the cold posts. The store holds the hot posts.

The archiver moves a post here when it is no longer among the newest posts of its author. Rows are inserted and
deleted, never updated. SQLAlchemy builds the statements for SQLite, PostgreSQL, MySQL and MariaDB.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import Delete, Select, Table, delete, func, select, union, update
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive import statements
from graph.archive.database import TIMEOUT_SECONDS, Database
from graph.archive.floors import Floors
from graph.archive.migrations import SchemaState
from graph.archive.statements import FLOORS, IDENTITY, POSTS
from graph.model import Location, Post
from graph.paging import Window

T = TypeVar("T")

IDS_PER_QUERY = 2000


class Archive:
    """The archive at one URL. Connects on first use.

    Every method except `close` raises ArchiveUnavailable if the database does not answer within `timeout` seconds. A
    write may nevertheless have been committed; repeating it is safe. With `migrates=False`, an outdated schema raises
    SchemaOutdated. The constructor raises ValueError if the URL is not valid.
    """

    def __init__(self, url: str, *, timeout: float = TIMEOUT_SECONDS, migrates: bool = True) -> None:
        self.database = Database(url, timeout, migrates=migrates)

    async def _transaction(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Run `work` in its own transaction and commit it. All access to the data goes through this method."""
        return await self.database.transaction(work)

    async def migrate(self) -> None:
        """Upgrade the schema to the current revision. If this fails, the next transaction tries again.

        Raises SchemaTooNew if a newer version of Fanline has upgraded the schema, and SchemaOutdated if the schema
        is outdated and `migrates` is False.
        """
        await self.database.migrate()

    async def schema_state(self) -> SchemaState:
        """Return whether the schema is absent, outdated or current, without creating it. Raises SchemaTooNew."""
        return await self.database.schema_state()

    async def identity(self) -> str:
        """Return the random id of this archive, which was generated when the tables were created."""

        async def work(connection: AsyncConnection) -> str:
            return str((await connection.execute(select(IDENTITY.c.id))).scalar_one())

        return await self._transaction(work)

    async def get_many(self, ids: Sequence[int]) -> list[Post | None]:
        """Return the posts with these ids, in this order, with None for each missing row. One query per 2,000 ids."""

        async def work(connection: AsyncConnection) -> dict[int, Post]:
            found: dict[int, Post] = {}
            for chunk in _chunks(list(dict.fromkeys(ids)), IDS_PER_QUERY):
                rows = await connection.execute(select(POSTS).where(POSTS.c.id.in_(chunk)))
                found.update((row[0], _post(*row)) for row in rows)
            return found

        posts = await self._transaction(work) if ids else {}
        return [posts.get(post) for post in ids]

    async def merge(self, authors: Collection[int], window: Window) -> list[Post]:
        """Return one window of the merged posts of these authors, in the direction of paging.

        One query; two on MySQL and MariaDB for more than 256 authors. The query reads at most `window.count` index
        entries per author, about 50 ms for 5,000 authors.
        """
        if not authors:
            return []

        async def work(connection: AsyncConnection) -> list[Post]:
            query, parameters = await _merge(connection, sorted(set(authors)), window)
            return [_post(*row) for row in await connection.execute(query, parameters)]

        return await self._transaction(work)

    async def slices(self, reads: Sequence[tuple[int, Window]]) -> list[list[Post]]:
        """Return the posts of each author and window, in the direction of paging.

        One query per 256 reads of one direction. Each read is a limited index scan.
        """
        if not reads:
            return []

        async def work(connection: AsyncConnection) -> list[list[Post]]:
            found: list[list[Post]] = [[] for _ in reads]
            for forward in (True, False):
                positions = [position for position, (_, window) in enumerate(reads) if window.forward is forward]
                for chunk in _chunks(positions, statements.MAX_UNION_TERMS):
                    terms = statements.terms_for(len(chunk))
                    parameters = statements.scan_parameters([_scan(*reads[position]) for position in chunk], terms)
                    for index, *row in await connection.execute(statements.slices(terms, forward), parameters):
                        found[chunk[index]].append(_post(*row))
                for position in positions:
                    found[position].sort(key=lambda post: post.id, reverse=forward)
            return found

        return await self._transaction(work)

    async def floors(self, author: int) -> Floors:
        """Return the floors of an author; both are initially 0. One query."""

        async def work(connection: AsyncConnection) -> Floors:
            row = (await connection.execute(select(FLOORS).where(FLOORS.c.author == author))).one_or_none()
            return Floors(row.moved, row.freed) if row else Floors()

        return await self._transaction(work)

    async def add(self, author: int, posts: Sequence[Post], old: int, new: int) -> bool:
        """Insert rows for an author's posts and move the floor from `old` to `new`, in one transaction.

        Existing rows stay unchanged. Return False and write nothing if the floor is not `old`.
        """

        async def work(connection: AsyncConnection) -> bool:
            if old == 0:
                await _add(connection, FLOORS, [{"author": author, "moved": 0, "freed": 0}])
            at_old = (FLOORS.c.author == author) & (FLOORS.c.moved == old)
            moved = await connection.execute(update(FLOORS).where(at_old).values(moved=new))
            if moved.rowcount != 1:
                return False
            await _add(connection, POSTS, [_row(post) for post in posts])
            return True

        return await self._transaction(work)

    async def ids(self, author: int, low: int, high: int) -> set[int]:
        """Return the ids of an author's rows in (`low`, `high`]. One query."""

        async def work(connection: AsyncConnection) -> set[int]:
            within = (POSTS.c.author == author) & (POSTS.c.id > low) & (POSTS.c.id <= high)
            return set(await connection.scalars(select(POSTS.c.id).where(within)))

        return await self._transaction(work)

    async def count(self, author: int, upto: int) -> int:
        """Return the number of an author's rows with ids up to and including `upto`. One query."""

        async def work(connection: AsyncConnection) -> int:
            within = (POSTS.c.author == author) & (POSTS.c.id <= upto)
            return int(await connection.scalar(select(func.count()).select_from(POSTS).where(within)) or 0)

        return await self._transaction(work)

    async def delete(self, ids: Collection[int]) -> None:
        """Delete rows. Missing rows are ignored. One transaction per 2,000 ids."""
        for chunk in _chunks(sorted(set(ids)), IDS_PER_QUERY):
            query = delete(POSTS).where(POSTS.c.id.in_(chunk))

            async def work(connection: AsyncConnection, query: Delete = query) -> None:
                await connection.execute(query)

            await self._transaction(work)

    async def raise_freed_floor(self, author: int, upto: int) -> None:
        """Raise an author's `freed` floor to `upto`. A higher floor stays."""

        async def work(connection: AsyncConnection) -> None:
            await _add(connection, FLOORS, [{"author": author, "moved": 0, "freed": 0}])
            below = (FLOORS.c.author == author) & (FLOORS.c.freed < upto)
            await connection.execute(update(FLOORS).where(below).values(freed=upto))

        await self._transaction(work)

    async def scan(self, after_author: int, limit: int) -> list[int]:
        """Return up to `limit` authors after `after_author` that have rows or floors, in ascending order."""

        async def work(connection: AsyncConnection) -> list[int]:
            parts = [
                select(table.c.author).distinct().where(table.c.author > after_author).order_by(table.c.author)
                for table in (FLOORS, POSTS)
            ]
            both = union(*(select(part.limit(limit).subquery().c.author) for part in parts)).subquery()
            return list(await connection.scalars(select(both.c.author).order_by(both.c.author).limit(limit)))

        return await self._transaction(work)

    async def close(self) -> None:
        """Wait for running transactions, cancel those that exceed the timeout, and close the connections."""
        await self.database.close()


async def _merge(connection: AsyncConnection, authors: list[int], window: Window) -> tuple[Select[Any], dict[str, int]]:
    """Return the merge statement for this database, and its parameters."""
    parameters = {"low": window.low, "high": window.high, "count": window.count}
    if connection.dialect.name == "sqlite":
        return statements.merged_by_list(authors, window.forward), parameters
    if connection.dialect.name == "postgresql":
        return statements.merged_by_lateral(authors, window.forward), parameters
    if len(authors) > statements.MAX_UNION_TERMS:
        leading = statements.leading_authors(authors, window.forward)
        authors = list(await connection.scalars(leading, parameters))
    terms = statements.terms_for(len(authors))
    scans = [_scan(author, window) for author in authors]
    return statements.merged_by_union(terms, window.forward), parameters | statements.scan_parameters(scans, terms)


def _scan(author: int, window: Window) -> tuple[int, int, int, int]:
    return (author, window.low, window.high, window.count)


async def _add(connection: AsyncConnection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert rows, except those whose primary key exists."""
    if rows:
        await connection.execute(statements.insert_new(connection.dialect.name, table), rows)


def _row(post: Post) -> dict[str, Any]:
    at = post.location
    return {
        "id": post.id,
        "author": post.author,
        "text": post.text,
        "platform": post.platform,
        "latitude": at and at.latitude,
        "longitude": at and at.longitude,
    }


def _post(
    id: int, author: int, text: str, platform: str | None, latitude: float | None, longitude: float | None
) -> Post:
    location = None if latitude is None or longitude is None else Location(latitude, longitude)
    return Post(id, author, text, platform, location)


def _chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
