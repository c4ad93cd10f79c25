"""Reads and fills the search indexes of an archive: of posts by their terms, and of users by their names."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence, Set
from typing import TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive import index, names, pages
from graph.archive.append import codes_of, lock
from graph.archive.codes import Clause
from graph.archive.index import IndexGap
from graph.archive.rows import EventRow
from graph.archive.search import Candidates, candidates
from graph.paging import Window

T = TypeVar("T")


class SearchIndexes(ABC):
    """The part of `Archive` that searches."""

    @abstractmethod
    async def _transaction(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Run `work` in its own transaction and commit it."""

    async def candidates(
        self, clauses: Sequence[Clause], window: Window, segments: int, hidden: Set[int] = frozenset()
    ) -> Candidates:
        """Return up to `window.count` of the next posts that satisfy all clauses, and perhaps some that do not.

        Posts of `hidden` authors are left out before their texts are read. Reads up to `segments` segments of the
        search index for each code. One transaction, with the statements of `graph.archive.search.candidates`.
        """
        return await self._transaction(lambda connection: candidates(connection, clauses, window, segments, hidden))

    async def unindexed(self, limit: int) -> tuple[IndexGap, list[EventRow]] | None:
        """Return the newest search index gap and the rows of its newest `limit` posts, or None if there is no gap."""

        async def work(connection: AsyncConnection) -> tuple[IndexGap, list[EventRow]] | None:
            gap = await index.next_gap(connection)
            if gap is None:
                return None
            numbers = await pages.post_numbers(connection, Window(limit, True, gap.first - 1, gap.last + 1))
            return gap, await pages.posts_by_id(connection, numbers)

        return await self._transaction(work)

    async def note_unindexed(self, store: str) -> None:
        """Record the posts after the end of the search index as a gap. One transaction. Raises ArchiveChanged."""

        async def work(connection: AsyncConnection) -> None:
            watermark = await lock(connection, store)
            await index.add_gap(connection, await index.end_of(connection), watermark)

        await self._transaction(work)

    async def close_gap(self, gap: IndexGap, rows: Sequence[EventRow], limit: int, store: str) -> bool:
        """Index a gap's newest posts, which `unindexed` has returned for the same limit, and shorten the gap.

        Return False, and change nothing, if the gap has changed or now has other posts. One transaction. Raises
        ArchiveChanged.
        """
        codes = await codes_of(rows)
        first = min(codes) if len(rows) == limit else gap.first

        async def work(connection: AsyncConnection) -> bool:
            await lock(connection, store)
            return await index.close_gap(connection, gap, first, codes)

        return await self._transaction(work)

    async def named(self, codes: Sequence[int], window: Window) -> tuple[list[int], Window | None]:
        """Return up to `window.count` of the next users with all codes, and the rest of the window (None at its end).

        The result can have fewer users, or none, before the end of the window. One query per code, and one more for
        several codes.
        """
        return await self._transaction(lambda connection: names.find(connection, codes, window))

    async def index_names(self, limit: int, store: str) -> bool:
        """Index the names of the next `limit` users whose names are not indexed. Return False if there are none.

        One transaction. Raises ArchiveChanged.
        """

        async def work(connection: AsyncConnection) -> bool:
            await lock(connection, store)
            return await names.index_next(connection, limit)

        return await self._transaction(work)
