"""The index of users by login and name. Callers begin the transactions; only one transaction writes at a time.

A row per user holds the login, the number of the event that set the name, and the codes of both
(`graph.archive.name_codes`). Another table, with one row per code and user, serves look-ups by code. A name with a
higher number replaces one with a lower number, so events can be applied in any order, and more than once.

The row of user 0 holds the *progress*: sign-ups up to the number in this row are indexed, and the archiver indexes new
sign-ups as it adds them. If the row is missing, as in an archive that is older than the index, the worker indexes all
names from the first sign-up on (`graph.archiver.indexing`).
"""

from collections.abc import Collection, Iterable, Sequence
from struct import pack, unpack
from typing import NamedTuple

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive import statements
from graph.archive.inserts import add_rows
from graph.archive.name_codes import codes_of
from graph.archive.pages import by_owners, first_rows
from graph.archive.rows import EventRow
from graph.archive.tables import NAME_CODES, NAMES
from graph.chunks import chunks
from graph.log.encoding import decode
from graph.log.events import ProfileChanged, UserCreated
from graph.model import MAX_NUMBER
from graph.paging import Window

CREATED, CHANGED = UserCreated.__name__, ProfileChanged.__name__
PROGRESS = 0
"""The user id of the row that holds the progress."""
SCANNED = 500
"""The minimum number of users that are read for each code of a query with several codes."""
ROWS_AT_ONCE = 2000


class Named(NamedTuple):
    """A user's name, with the number of the event that set it. The login is None if the event does not contain it."""

    user: int
    number: int
    login: str | None
    name: str


def names_in(rows: Iterable[EventRow]) -> list[Named]:
    """Return the names that events set. Damaged events set none."""
    found = []
    for row in rows:
        if row.kind in (CREATED, CHANGED) and row.body is not None:
            try:
                body = decode(*row).body
            except ValueError:
                continue
            if isinstance(body, UserCreated) and body.login:  # the login of an erased user is empty
                found.append(Named(row.number, row.number, body.login, body.name))
            elif isinstance(body, ProfileChanged) and body.name is not None:
                found.append(Named(body.user, row.number, None, body.name))
    return found


async def add(connection: AsyncConnection, rows: Sequence[EventRow], watermark: int) -> None:
    """Index the names that events set. The events must already be inserted.

    `watermark` is the archive watermark before they were inserted. No statement if the events set no names; otherwise
    four per 900 users, one more for each user who loses codes, and further reads for late sign-ups.
    """
    names = names_in(rows)
    # a rename of a user whose sign-up arrives late may be in the archive
    late = [each.user for each in names if each.login is not None and each.number <= watermark]
    await _index(connection, names + (await _renames(connection, late) if late else []))


async def postpone(connection: AsyncConnection, rows: Sequence[EventRow]) -> None:
    """Index the renames among these events, but leave the sign-ups to the worker.

    Up to three statements, and four per 900 renamed users.
    """
    await _index(connection, [each for each in names_in(rows) if each.login is None])
    created = [row.number for row in rows if row.kind == CREATED]
    if created and await _progress(connection) >= min(created):
        await _set_progress(connection, min(created) - 1)


async def index_next(connection: AsyncConnection, limit: int) -> bool:
    """Index the names of the next `limit` users after the progress. Return False if there are no more users."""
    progress = await _progress(connection)
    if progress >= MAX_NUMBER:
        return False
    query = statements.events_of_kind(CREATED)
    created = [EventRow(*row) for row in await first_rows(connection, query, progress, MAX_NUMBER, limit)]
    if created:
        names = names_in(created)
        await _index(connection, names + await _renames(connection, [each.user for each in names]))
    await _set_progress(connection, created[-1].number if len(created) == limit else MAX_NUMBER)
    return bool(created)


async def find(connection: AsyncConnection, codes: Sequence[int], window: Window) -> tuple[list[int], Window | None]:
    """Return up to `window.count` of the next users with all codes, and the rest of the window (None at its end).

    The result can have fewer users, or none, before the end of the window. One statement per code, and one more for
    several codes.
    """
    count = window.count if len(codes) == 1 else max(window.count, SCANNED)
    read = {code: await _users(connection, code, window, count) for code in codes}
    shortest = min(read.values(), key=lambda users: _depth(users, count, window.forward))
    bound = shortest[-1] if len(shortest) == count else None
    found = set(shortest)
    others = [code for code in codes if read[code] is not shortest]
    if others and found:
        among = NAME_CODES.c.code.in_(others) & NAME_CODES.c.user.in_(shortest)
        held = {
            tuple(row) for row in await connection.execute(select(NAME_CODES.c.code, NAME_CODES.c.user).where(among))
        }
        found = {user for user in shortest if all((code, user) in held for code in others)}
    users = [user for user in shortest if user in found]
    if len(users) > window.count:
        users = users[: window.count]
        bound = users[-1]
    return users, None if bound is None else window.beyond(bound)


def _depth(users: Sequence[int], count: int, forward: bool) -> tuple[int, int]:
    """Return a sort key: lowest for the shortest complete list or, if there is none, for the one reaching furthest.

    A list is complete if it has fewer than `count` users.
    """
    if len(users) < count:
        return -1, len(users)
    return (users[-1] if forward else MAX_NUMBER - users[-1]), 0


async def _users(connection: AsyncConnection, code: int, window: Window, count: int) -> list[int]:
    user = NAME_CODES.c.user
    within = (NAME_CODES.c.code == code) & (user > window.low) & (user < window.high)
    query = select(user).where(within).order_by(statements.page_order(user, window.forward)).limit(count)
    return list(await connection.scalars(query))


async def _renames(connection: AsyncConnection, users: Collection[int]) -> list[Named]:
    """Return the names that the users set after their sign-ups."""
    found: list[Named] = []
    after = 0
    while rows := await by_owners(connection, "actor", users, [CHANGED], after, ROWS_AT_ONCE):
        found += names_in(rows)
        after = rows[-1].number
    return found


async def _index(connection: AsyncConnection, names: Sequence[Named]) -> None:
    """Store the newest name of each user, unless the index has a newer one. Skip users whose login is not known."""
    newest: dict[int, Named] = {}
    logins = {each.user: each.login for each in names if each.login is not None}
    for each in sorted(names, key=lambda each: each.number):
        newest[each.user] = each
    for some in chunks(sorted(newest), statements.MAX_LIST_LENGTH):
        held = {row.user: row for row in await connection.execute(select(NAMES).where(NAMES.c.user.in_(some)))}
        rows, added = [], []
        for user in some:
            old, new = held.get(user), newest[user]
            login = old.login if old else logins.get(user)
            if login is None or (old and old.number >= new.number):
                continue
            codes = codes_of(login, new.name)
            before = set(codes_in(old.codes)) if old else set()
            if before - codes:
                gone = (NAME_CODES.c.user == user) & NAME_CODES.c.code.in_(before - codes)
                await connection.execute(delete(NAME_CODES).where(gone))
            added += [(code, user) for code in codes - before]
            rows.append((user, new.number, login, pack(f"<{len(codes)}i", *sorted(codes))))
        await connection.execute(delete(NAMES).where(NAMES.c.user.in_([row[0] for row in rows if row[0] in held])))
        await add_rows(connection, NAMES, ("user", "number", "login", "codes"), rows)
        await add_rows(connection, NAME_CODES, ("code", "user"), sorted(added))


async def remove(connection: AsyncConnection, user: int) -> None:
    """Remove a user from the index. Up to three statements."""
    codes = (await connection.execute(select(NAMES.c.codes).where(NAMES.c.user == user))).scalar()
    if codes is not None:
        await connection.execute(
            delete(NAME_CODES).where(NAME_CODES.c.user == user, NAME_CODES.c.code.in_(codes_in(codes)))
        )
        await connection.execute(delete(NAMES).where(NAMES.c.user == user))


def codes_in(codes: bytes) -> tuple[int, ...]:
    """Decode the codes in a user's row."""
    return unpack(f"<{len(codes) // 4}i", codes)


async def _progress(connection: AsyncConnection) -> int:
    return (await connection.execute(select(NAMES.c.number).where(NAMES.c.user == PROGRESS))).scalar() or 0


async def _set_progress(connection: AsyncConnection, number: int) -> None:
    await connection.execute(delete(NAMES).where(NAMES.c.user == PROGRESS))
    await add_rows(connection, NAMES, ("user", "number", "login", "codes"), [(PROGRESS, number, "", b"")])
