"""Removes the personal data of deleted users from an archive: texts, names, notifications and list memberships."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive import list_members, names
from graph.archive.append import lock
from graph.archive.pages import by_owners
from graph.archive.rows import TEXTS, EventRow, without_texts
from graph.archive.tables import EVENTS, NOTIFICATIONS

T = TypeVar("T")

NOTIFICATIONS_AT_ONCE = 500
"""The number of notification subjects that one transaction looks up. A user has at most two groups per subject."""


class Erasures(ABC):
    """The part of `Archive` that erases users."""

    @abstractmethod
    async def _transaction(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Run `work` in its own transaction and commit it."""

    async def erase_texts(self, user: int, after: int, limit: int, store: str) -> list[int]:
        """Empty the texts in a user's first `limit` events above `after`, counting only kinds that can hold texts.

        Return the numbers of these events. One transaction, which reads the rows in one query and updates each row that
        holds a text. Raises ArchiveChanged.
        """

        async def work(connection: AsyncConnection) -> list[int]:
            await lock(connection, store)
            rows = await by_owners(connection, "actor", [user], [*TEXTS], after, limit)
            await empty_texts(connection, rows)
            return [row.number for row in rows]

        return await self._transaction(work)

    async def list_additions(self, user: int, after: int, limit: int) -> list[EventRow]:
        """Return the first `limit` events, with numbers above `after`, that added a user to a list. One query."""
        return await self._transaction(lambda connection: list_members.additions(connection, user, after, limit))

    async def erased_list_members(self, limit: int) -> Sequence[int]:
        """Return the first `limit` erased users who may be members of lists. One query."""
        return await self._transaction(lambda connection: list_members.erased_members(connection, limit))

    async def erase_list_members(self, user: int, up_to: int, store: str) -> None:
        """Delete a user's rows of `list_members`, up to an event number. One transaction. Raises ArchiveChanged."""

        async def work(connection: AsyncConnection) -> None:
            await lock(connection, store)
            await list_members.remove(connection, user, up_to)

        await self._transaction(work)

    async def erase_names(self, user: int, store: str) -> None:
        """Remove a user from the search index of names. One transaction. Raises ArchiveChanged."""

        async def work(connection: AsyncConnection) -> None:
            await lock(connection, store)
            await names.remove(connection, user)

        await self._transaction(work)

    async def erase_notifications(self, user: int, store: str) -> bool:
        """Remove up to 1,000 notifications of a user. Return False if there were none. Raises ArchiveChanged."""

        async def work(connection: AsyncConnection) -> bool:
            await lock(connection, store)
            of_user = NOTIFICATIONS.c.recipient == user
            query = select(NOTIFICATIONS.c.subject).where(of_user).limit(NOTIFICATIONS_AT_ONCE)
            subjects = sorted(set(await connection.scalars(query)))
            if subjects:
                await connection.execute(delete(NOTIFICATIONS).where(of_user, NOTIFICATIONS.c.subject.in_(subjects)))
            return bool(subjects)

        return await self._transaction(work)


async def empty_texts(connection: AsyncConnection, rows: Iterable[EventRow]) -> None:
    """Empty the texts in rows of the archive. One update per row that holds a text."""
    changed = [(row, without_texts(row)) for row in rows]
    parameters = [{"at": row.number, "emptied": empty.body} for row, empty in changed if empty != row]
    if parameters:
        of_row = update(EVENTS).where(EVENTS.c.number == bindparam("at"))
        await connection.execute(of_row.values(body=bindparam("emptied")), parameters)
