"""The archive's table of notifications: the newest event number of each user's groups, and how far each user has read.

Rows are written together with the events that they come from. The groups (`graph.log.notification_groups`) of a deleted
post are deleted, because they would reveal which users the post mentioned.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Insert, Select, bindparam, delete, func, select, union_all
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive import statements
from graph.archive.pages import IDS_PER_QUERY
from graph.archive.postgresql import array_rows
from graph.archive.rows import FOLLOW, LIKE, POST, READ, REPOST, EventRow
from graph.archive.tables import NOTIFICATIONS
from graph.chunks import chunks
from graph.log.encoding import decode
from graph.log.events import NotificationsRead
from graph.log.notification_groups import Group, NotificationKind, group_of
from graph.log.recipients import recipients

READ_MARK = 0
"""The kind and the subject of the row that holds the number up to which a user has read the notifications."""
NOBODY = -1
COLUMNS = ("subject", "kind", "recipient", "number")
NOTIFYING = frozenset({FOLLOW, LIKE, POST, READ, REPOST})
"""The kinds of events that notify users or record that notifications were read."""
ACTION_KINDS = [NotificationKind.LIKE.value, NotificationKind.REPOST.value]
"""The kinds of groups whose events users can undo."""
POST_KINDS = [kind.value for kind in NotificationKind if kind is not NotificationKind.FOLLOW]

Upsert: TypeAlias = Callable[[Any], Insert]


class Row(NamedTuple):
    """The primary key of a row."""

    subject: int
    kind: int
    recipient: int


def rows_of(events: Iterable[EventRow]) -> dict[Row, int]:
    """Return the rows that events write, each with its highest number. Raises ValueError for a damaged event."""
    found: dict[Row, int] = {}
    for each in events:
        if each.kind not in NOTIFYING:
            continue
        event = decode(*each)
        rows = [Row(group.subject, group.kind.value, user) for user, group in recipients(event)]
        number = event.number
        if isinstance(event.body, NotificationsRead):
            rows, number = [Row(READ_MARK, READ_MARK, event.body.user)], min(event.body.upto, event.number)
        found.update((row, max(number, found.get(row, 0))) for row in rows)
    return found


async def add(connection: AsyncConnection, events: Iterable[EventRow]) -> None:
    """Add the rows of events. A row keeps the highest number. One statement, or none if the events notify nobody."""
    rows = [(*row, number) for row, number in sorted(rows_of(events).items())]
    if not rows:
        return
    columns = zip(COLUMNS, zip(*rows, strict=True), strict=True)
    if connection.dialect.name == "postgresql":
        await connection.execute(upsert("postgresql"), dict(columns))
    else:
        await connection.execute(
            upsert(connection.dialect.name), [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        )


@lru_cache(maxsize=3)
def upsert(dialect: str) -> Insert:
    """Return the statement that inserts rows or raises their numbers; for PostgreSQL, from one array per column."""
    number = NOTIFICATIONS.c.number
    if dialect == "mysql":
        values = mysql.insert(NOTIFICATIONS)
        return values.on_duplicate_key_update(number=func.greatest(number, values.inserted.number))
    if dialect == "sqlite":
        one = sqlite.insert(NOTIFICATIONS)
        return one.on_conflict_do_update(
            index_elements=COLUMNS[:3], set_={"number": func.max(number, one.excluded.number)}
        )
    many = postgresql.insert(NOTIFICATIONS).from_select(COLUMNS, array_rows(NOTIFICATIONS, COLUMNS))
    return many.on_conflict_do_update(
        index_elements=COLUMNS[:3], set_={"number": func.greatest(number, many.excluded.number)}
    )


async def remove(connection: AsyncConnection, posts: Sequence[int]) -> None:
    """Delete all notification groups about posts. One statement, which reads only these rows."""
    table = NOTIFICATIONS.c
    await connection.execute(delete(NOTIFICATIONS).where(table.subject.in_(posts), table.kind.in_(POST_KINDS)))


async def newest(connection: AsyncConnection, users: Sequence[int], limit: int) -> dict[int, dict[Group, int]]:
    """Return each user's newest `limit` groups with the numbers of their newest events, newest first.

    Users without groups are left out, and so are groups of unknown kinds, which a later version has archived. One query
    per 256 users, which reads at most `limit` + 1 rows per user.
    """
    found: dict[int, dict[Group, int]] = {}
    for some in chunks(users, statements.MAX_UNION_TERMS):
        terms = statements.terms_for(len(some))
        padded = [*some, *[NOBODY] * (terms - len(some))]
        parameters = {"limit": limit + 1} | {f"user{place}": user for place, user in enumerate(padded)}
        for row in await connection.execute(newest_of(terms), parameters):
            group = group_of(row.kind, row.subject)
            if group is not None:
                found.setdefault(row.recipient, {})[group] = row.number
    return {
        user: dict(sorted(groups.items(), key=lambda item: item[1], reverse=True)[:limit])
        for user, groups in found.items()
    }


async def about(connection: AsyncConnection, posts: Collection[int]) -> list[tuple[int, Group, int]]:
    """Return the groups of likes and reposts of posts, as (recipient, group, number of the newest event).

    One query per 2,000 posts, which reads only these rows.
    """
    found, table = [], NOTIFICATIONS.c
    for some in chunks(sorted(set(posts)), IDS_PER_QUERY):
        query = select(*NOTIFICATIONS.c).where(table.subject.in_(some), table.kind.in_(ACTION_KINDS))
        for row in await connection.execute(query):
            group = group_of(row.kind, row.subject)
            if group is not None:
                found.append((row.recipient, group, row.number))
    return found


@lru_cache(maxsize=16)
def newest_of(terms: int) -> Select[Any]:
    """Return the statement for the newest rows of `terms` users: a union of limited index scans."""
    table = NOTIFICATIONS.c
    parts = []
    for place in range(terms):
        rows = select(*NOTIFICATIONS.c).where(table.recipient == bindparam(f"user{place}"))
        limited = rows.order_by(table.number.desc()).limit(bindparam("limit")).subquery()
        parts.append(select(limited))
    every = union_all(*parts).subquery()
    return select(every)


async def notifications_read(connection: AsyncConnection, users: Collection[int]) -> dict[int, int]:
    """Return the event number up to which each user has read notifications, if any. One query per 2,000 users."""
    table, found = NOTIFICATIONS.c, dict[int, int]()
    for some in chunks(sorted(set(users)), IDS_PER_QUERY):
        of_users = (table.subject == READ_MARK) & (table.kind == READ_MARK) & table.recipient.in_(some)
        query = select(table.recipient, table.number).where(of_users)
        found.update((user, number) for user, number in await connection.execute(query))
    return found
