"""The archive's table of the members of lists: the events that added each user to a list of users.

Rows are written together with these events. They are kept when the user is removed from the list or the list is
deleted, so they show only which lists may contain a user. They are deleted when the user is erased.
"""

from collections.abc import Iterable, Iterator, Sequence

import orjson
from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive import statements
from graph.archive.inserts import add_rows
from graph.archive.pages import event_rows
from graph.archive.rows import MEMBERS, USER_ERASURE, EventRow
from graph.archive.tables import EVENTS, LIST_MEMBERS

COLUMNS = ("member", "number")


def rows_of(events: Iterable[EventRow]) -> Iterator[tuple[int, int]]:
    """Yield (member, number) for each user whom events add to a list. Raises ValueError for a damaged event."""
    for each in events:
        field = MEMBERS.get(each.kind)
        if field is not None and each.body is not None:
            for member in dict.fromkeys(orjson.loads(each.body).get(field, ())):
                yield int(member), each.number


async def add(connection: AsyncConnection, events: Iterable[EventRow]) -> None:
    """Add the rows of new events. One statement, or none if there are no list events. Raises EventsRefused."""
    await add_rows(connection, LIST_MEMBERS, COLUMNS, list(rows_of(events)))


async def additions(connection: AsyncConnection, member: int, after: int, limit: int) -> list[EventRow]:
    """Return the first `limit` events, with numbers above `after`, that added a user to a list. One query."""
    table = LIST_MEMBERS.c
    of_member = select(table.number).where(table.member == member, table.number > after)
    numbers = of_member.order_by(table.number).limit(limit).subquery()
    query = statements.events().join(numbers, EVENTS.c.number == numbers.c.number).order_by(EVENTS.c.number)
    return await event_rows(connection, query)


async def remove(connection: AsyncConnection, member: int, up_to: int) -> None:
    """Delete the rows of a user with numbers up to `up_to`. One statement."""
    table = LIST_MEMBERS.c
    await connection.execute(delete(LIST_MEMBERS).where(table.member == member, table.number <= up_to))


async def erased_members(connection: AsyncConnection, limit: int) -> Sequence[int]:
    """Return up to `limit` erased users who have rows, in the order of erasure. One query, O(n) in erased users."""
    members = select(LIST_MEMBERS.c.member).where(LIST_MEMBERS.c.member == EVENTS.c.actor)
    erased = select(EVENTS.c.actor).where(EVENTS.c.kind == USER_ERASURE, members.exists()).order_by(EVENTS.c.number)
    return list(dict.fromkeys(await connection.scalars(erased.limit(limit))))
