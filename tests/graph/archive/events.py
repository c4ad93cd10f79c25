"""Events for tests of the archive: rows as the archiver appends them, and the content of the tables."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import orjson
from sqlalchemy import event, select
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive.archive import Archive
from graph.archive.rows import DELETION, FOLLOW, POST, REPOST, UNFOLLOW, Credential, EventRow
from graph.archive.tables import EVENTS
from graph.model import Post

STORE = "store 1"


def post(number: int, author: int = 1, text: str = "text", **fields: Any) -> EventRow:
    """Return the row of a post."""
    return EventRow(number, POST, author, None, orjson.dumps({"text": text, **fields}).decode())


def row_of(post: Post) -> EventRow:
    """Return the row of a post of the model."""
    at = post.location
    fields = {"platform": post.platform, "latitude": at and at.latitude, "longitude": at and at.longitude}
    body = {"text": post.text, **{name: value for name, value in fields.items() if value is not None}}
    return EventRow(post.id, POST, post.author, None, orjson.dumps(body).decode())


def reposted(number: int, user: int, original: int) -> EventRow:
    """Return the row of a plain repost."""
    return EventRow(number, REPOST, user, original, '{"author":1}')


def deletion(number: int, post: int, author: int = 1, body: str = '{"terms":"c2VjcmV0"}') -> EventRow:
    """Return the row of a deletion as it is in the log."""
    return EventRow(number, DELETION, author, post, body)


def followed(number: int, follower: int = 1, followee: int = 2) -> EventRow:
    """Return the row of a follow."""
    return EventRow(number, FOLLOW, follower, followee, "{}")


def unfollowed(number: int, follower: int = 1, followee: int = 2) -> EventRow:
    """Return the row of an unfollow."""
    return EventRow(number, UNFOLLOW, follower, followee, "{}")


def list_created(number: int, members: Sequence[int], owner: int = 1) -> EventRow:
    """Return the row of the creation of a list, whose id is the number."""
    return EventRow(number, "ListCreated", owner, None, orjson.dumps({"name": "list", "members": members}).decode())


def list_changed(number: int, added: Sequence[int] = (), list_id: int = 9, owner: int = 1) -> EventRow:
    """Return the row of an addition of members to a list."""
    return EventRow(number, "ListChanged", owner, list_id, orjson.dumps({"added": added}).decode())


async def append(
    archive: Archive,
    *rows: EventRow,
    credentials: Sequence[Credential] = (),
    low: int | None = None,
    up_to: int | None = None,
    indexes: bool = True,
) -> None:
    """Append events above the archive watermark, or above `low`. Bind the archive first if necessary."""
    await archive.bind(STORE, replacing=None, unused_only=True)
    watermark = (await archive.state()).watermark
    low = watermark if low is None else low
    up_to = max([low, *(row.number for row in rows)]) if up_to is None else up_to
    await archive.append(rows, credentials, store=STORE, watermark=watermark, up_to=up_to, indexes=indexes)


async def held(archive: Archive) -> list[EventRow]:
    """Return all rows of the archive."""
    return await archive.range(0, 2**60, 100_000)


async def ended(archive: Archive) -> dict[int, int]:
    """Return the numbers of the events that were undone, with the numbers of the events that undid them."""

    async def work(connection: AsyncConnection) -> dict[int, int]:
        query = select(EVENTS.c.number, EVENTS.c.ended).where(EVENTS.c.ended.is_not(None))
        return {row.number: row.ended for row in await connection.execute(query)}

    return await archive.database.transaction(work)


@contextmanager
def statements_of(archive: Archive) -> Iterator[list[tuple[str, Any]]]:
    """Collect the statements that an archive sends, with their parameters, except those that begin a transaction."""
    sent: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, *rest: Any) -> None:
        if not statement.startswith(("BEGIN", "PRAGMA", "SET TRANSACTION")):
            sent.append((statement, parameters))

    engine = archive.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", note)
