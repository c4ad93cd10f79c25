"""Reads and repairs the public timeline, and moves the posts of suspended authors out of it and back."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Set
from typing import TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive import public_checks, public_posts
from graph.archive.append import lock
from graph.archive.public_checks import Listing
from graph.archive.public_posts import Move, PublicPage
from graph.archive.rows import EventRow
from graph.paging import Window

T = TypeVar("T")


class PublicReads(ABC):
    """The part of `Archive` that reads and corrects the public timeline."""

    @abstractmethod
    async def _transaction(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Run `work` in its own transaction and commit it."""

    async def published(self, window: Window, hidden: Set[int] = frozenset()) -> PublicPage:
        """Return up to `window.count` of the next posts on the public timeline, and the rest of the window.

        Posts by `hidden` authors are left out, and so are those by suspended authors that have yet to be moved out. The
        page can have fewer posts, or none, even if part of the window remains. One transaction, with the statements of
        `graph.archive.public_posts.page`.
        """
        return await self._transaction(lambda connection: public_posts.page(connection, window, hidden))

    async def next_move(self) -> Move | None:
        """Return an unfinished move or the unfinished fill, or None if there is neither. One or two queries."""
        return await self._transaction(public_posts.next_move)

    async def move_public_posts(self, limit: int, store: str) -> bool:
        """Advance an unfinished move, or the unfinished fill, by up to `limit` posts. Return False if there is neither.

        One transaction. Raises ArchiveChanged.
        """

        async def work(connection: AsyncConnection) -> bool:
            await lock(connection, store)
            return await public_posts.step(connection, limit)

        return await self._transaction(work)

    async def public_numbers(self, after: int, limit: int) -> list[int]:
        """Return the next post numbers above `after`: of all posts, listed or not, and of the public timeline.

        Up to `limit` from each. The result is empty only at the end. Two queries; three on PostgreSQL.
        """
        return await self._transaction(lambda connection: public_checks.numbers(connection, after, limit))

    async def wrong_public_posts(self, posts: Collection[int]) -> dict[int, Listing]:
        """Return the posts that are on the public timeline by mistake, or missing from it. Up to four queries."""
        return await self._transaction(lambda connection: public_checks.wrong_posts(connection, posts))

    async def correct_public_posts(self, posts: Collection[int], store: str) -> None:
        """Add posts to the public timeline or remove them, according to the events.

        One transaction. Raises ArchiveChanged.
        """

        async def work(connection: AsyncConnection) -> None:
            await lock(connection, store)
            await public_checks.correct_posts(connection, posts)

        await self._transaction(work)

    async def wrong_decisions(self, users: Collection[int]) -> dict[int, EventRow | None]:
        """Return the users whose recorded suspension decision is wrong, each with the newest decision or None.

        About two queries per 900 users.
        """
        return await self._transaction(lambda connection: public_checks.wrong_decisions(connection, users))

    async def correct_decisions(self, users: Collection[int], store: str) -> None:
        """Replace wrong recorded decisions about users with the newest ones, and begin to move these users' posts.

        One transaction. Raises ArchiveChanged.
        """

        async def work(connection: AsyncConnection) -> None:
            await lock(connection, store)
            await public_checks.correct_decisions(connection, users)

        await self._transaction(work)
