"""The archive: cold posts in an SQL database, beside the store that holds the hot ones.

A post is moved here once it is no longer among the newest of its author; rows never change, they come and go.
Statements are SQLAlchemy's, so that SQLite, PostgreSQL and MySQL or MariaDB give the same answers.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import Delete, Select, Table, delete, func, select, union, update
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive import statements
from graph.archive.database import SECONDS, Database
from graph.archive.floors import Floors
from graph.archive.migrations import SchemaState
from graph.archive.statements import FLOORS, IDENTITY, POSTS
from graph.model import Location, Post
from graph.paging import Window

T = TypeVar("T")

CHUNK = 2000


class Archive:
    """The archive at one URL. Nothing connects before the first use.

    Every method but `close` raises ArchiveUnavailable if the database does not answer within `seconds`; a write may
    then have been done or not, and can be repeated. The constructor raises ValueError, with a sentence, for a URL
    that names no archive.
    """

    def __init__(self, url: str, *, seconds: float = SECONDS, migrates: bool = True) -> None:
        self.database = Database(url, seconds, migrates=migrates)

    async def _transaction(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Do some work in a transaction of its own, commit included: the one way to the data."""
        return await self.database.transaction(work)

    async def migrate(self) -> None:
        """Bring the schema up to date; the first transaction does it if this failed.

        Raises SchemaTooNew if a newer version of Fanline has migrated it, and SchemaOutdated if this archive
        `migrates` nothing.
        """
        await self.database.migrate()

    async def schema_state(self) -> SchemaState:
        """Return whether the schema is absent, outdated or current. Creates nothing. Raises SchemaTooNew."""
        return await self.database.schema_state()

    async def identity(self) -> str:
        """Give the random id that was made with the tables: equal for two processes if they share one archive."""

        async def work(connection: AsyncConnection) -> str:
            return str((await connection.execute(select(IDENTITY.c.id))).scalar_one())

        return await self._transaction(work)

    async def get_many(self, ids: Sequence[int]) -> list[Post | None]:
        """Look posts up by id, in this order; None for those without a row. One query for every 2000."""

        async def work(connection: AsyncConnection) -> dict[int, Post]:
            found: dict[int, Post] = {}
            for chunk in _chunks(list(dict.fromkeys(ids)), CHUNK):
                rows = await connection.execute(select(POSTS).where(POSTS.c.id.in_(chunk)))
                found.update((row[0], _post(*row)) for row in rows)
            return found

        posts = await self._transaction(work) if ids else {}
        return [posts.get(post) for post in ids]

    async def merge(self, authors: Collection[int], window: Window) -> list[Post]:
        """Give the posts of a window of all these authors together, in the direction of paging.

        One query; with MySQL and MariaDB two for more than 256 authors. For every author it costs a look into the
        index and at most `window.count` of its entries, however many posts there are: some 50 ms for 5000 authors.
        """
        if not authors:
            return []

        async def work(connection: AsyncConnection) -> list[Post]:
            query, parameters = await _merge(connection, sorted(set(authors)), window)
            return [_post(*row) for row in await connection.execute(query, parameters)]

        return await self._transaction(work)

    async def slices(self, reads: Sequence[tuple[int, Window]]) -> list[list[Post]]:
        """Give, for each author and window, its posts in the direction of paging.

        One query for every 256 of one direction, each a limited walk along the index.
        """
        if not reads:
            return []

        async def work(connection: AsyncConnection) -> list[list[Post]]:
            found: list[list[Post]] = [[] for _ in reads]
            for forward in (True, False):
                places = [place for place, (_, window) in enumerate(reads) if window.forward is forward]
                for some in _chunks(places, statements.TERMS):
                    terms = statements.terms_for(len(some))
                    parameters = statements.walk_parameters([_walk(*reads[place]) for place in some], terms)
                    for at, *row in await connection.execute(statements.slices(terms, forward), parameters):
                        found[some[at]].append(_post(*row))
                for place in places:
                    found[place].sort(key=lambda post: post.id, reverse=forward)
            return found

        return await self._transaction(work)

    async def floors(self, author: int) -> Floors:
        """Give the floors of an author, both 0 at first. One query."""

        async def work(connection: AsyncConnection) -> Floors:
            row = (await connection.execute(select(FLOORS).where(FLOORS.c.author == author))).one_or_none()
            return Floors(row.moved, row.freed) if row else Floors()

        return await self._transaction(work)

    async def add(self, author: int, posts: Sequence[Post], old: int, new: int) -> bool:
        """Add the rows of an author's posts and move the floor from `old` to `new`, both or neither.

        Rows that exist are left alone. False, with nothing written, if the floor is not at `old`.
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
        """Give the ids of an author's rows above `low` up to and including `high`. One query."""

        async def work(connection: AsyncConnection) -> set[int]:
            within = (POSTS.c.author == author) & (POSTS.c.id > low) & (POSTS.c.id <= high)
            return set(await connection.scalars(select(POSTS.c.id).where(within)))

        return await self._transaction(work)

    async def count(self, author: int, upto: int) -> int:
        """Count an author's rows up to and including an id. One query."""

        async def work(connection: AsyncConnection) -> int:
            within = (POSTS.c.author == author) & (POSTS.c.id <= upto)
            return int(await connection.scalar(select(func.count()).select_from(POSTS).where(within)) or 0)

        return await self._transaction(work)

    async def delete(self, ids: Collection[int]) -> None:
        """Delete rows; those that are not there are no matter. One transaction for every 2000."""
        for chunk in _chunks(sorted(set(ids)), CHUNK):
            query = delete(POSTS).where(POSTS.c.id.in_(chunk))

            async def work(connection: AsyncConnection, query: Delete = query) -> None:
                await connection.execute(query)

            await self._transaction(work)

    async def note_freed(self, author: int, upto: int) -> None:
        """Raise an author's `freed` floor to `upto`, never lower it."""

        async def work(connection: AsyncConnection) -> None:
            await _add(connection, FLOORS, [{"author": author, "moved": 0, "freed": 0}])
            below = (FLOORS.c.author == author) & (FLOORS.c.freed < upto)
            await connection.execute(update(FLOORS).where(below).values(freed=upto))

        await self._transaction(work)

    async def scan(self, after_author: int, limit: int) -> list[int]:
        """Give the next authors, ascending, who have rows or floors."""

        async def work(connection: AsyncConnection) -> list[int]:
            parts = [
                select(table.c.author).distinct().where(table.c.author > after_author).order_by(table.c.author)
                for table in (FLOORS, POSTS)
            ]
            both = union(*(select(part.limit(limit).subquery().c.author) for part in parts)).subquery()
            return list(await connection.scalars(select(both.c.author).order_by(both.c.author).limit(limit)))

        return await self._transaction(work)

    async def close(self) -> None:
        """End what is under way and close the connections."""
        await self.database.close()


async def _merge(connection: AsyncConnection, authors: list[int], window: Window) -> tuple[Select[Any], dict[str, int]]:
    """Choose the statement that merges fast in this database, with its parameters."""
    parameters = {"low": window.low, "high": window.high, "count": window.count}
    if connection.dialect.name == "sqlite":
        return statements.merged_by_list(authors, window.forward), parameters
    if connection.dialect.name == "postgresql":
        return statements.merged_by_lateral(authors, window.forward), parameters
    if len(authors) > statements.TERMS:
        leading = statements.leading_authors(authors, window.forward)
        authors = list(await connection.scalars(leading, parameters))
    terms = statements.terms_for(len(authors))
    walks = statements.walk_parameters([_walk(author, window) for author in authors], terms)
    return statements.merged_by_union(terms, window.forward), parameters | walks


def _walk(author: int, window: Window) -> tuple[int, int, int, int]:
    return (author, window.low, window.high, window.count)


async def _add(connection: AsyncConnection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert rows, except those whose primary key is there."""
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
