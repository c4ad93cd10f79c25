"""Writes a batch of log events into the archive, in one transaction that the caller has begun.

The first statement is a compare-and-set of the watermark. It locks the row until the transaction ends, so only one
process at a time gets past it, and the data that this module reads cannot change meanwhile. On SQLite, it locks the
whole file before the first read, because a transaction that reads before it writes could fail to become a writer.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive import index, list_members, notifications, public_posts, statements
from graph.archive.index import IndexedPost
from graph.archive.inserts import add_rows, refusals
from graph.archive.pages import IDS_PER_QUERY, by_owners, event_rows, posts_by_id
from graph.archive.rows import (
    DELETION,
    FOLLOW,
    LIKE,
    LIKE_KINDS,
    POST,
    REPORT,
    REPORTS_CLOSED,
    REPOST,
    TEXTS,
    UNFOLLOW,
    UNLIKE,
    UNREPOST,
    USER_ERASURE,
    ArchiveChanged,
    ConflictingEvent,
    Credential,
    EventRow,
    list_owners,
    redacted,
    same_event,
    stored,
    without_texts,
)
from graph.archive.tables import CREDENTIALS, EVENTS, STATE
from graph.chunks import chunks
from graph.post_lists import LIST_COLUMNS

POSTS_AT_ONCE = 50


async def advance(connection: AsyncConnection, store: str, watermark: int, up_to: int) -> None:
    """Raise the archive watermark from `watermark` to `up_to`, unless it is already higher. Raises ArchiveChanged."""
    unchanged = (STATE.c.watermark == watermark) & (STATE.c.store == store)
    moved = await connection.execute(update(STATE).where(unchanged).values(watermark=max(watermark, up_to)))
    if moved.rowcount != 1:
        raise ArchiveChanged


Codes: TypeAlias = Mapping[int, IndexedPost]
"""Posts and their search index codes, by event number."""


async def codes_of(rows: Sequence[EventRow]) -> Codes:
    """Return the search index codes of the posts among these rows. Raises EventsRefused if a body is damaged."""
    posts = [row for row in rows if row.kind == POST and row.body is not None]
    found: dict[int, IndexedPost] = {}
    for chunk in chunks(posts, POSTS_AT_ONCE):
        with refusals():
            found |= {row.number: index.indexed(row) for row in chunk}
        if len(found) < len(posts):
            await asyncio.sleep(0)
    return found


async def append(connection: AsyncConnection, rows: Sequence[EventRow], codes: Codes, watermark: int) -> None:
    """Insert the rows that the archive lacks, and apply the deletions, unfollows, likes and unlikes among them.

    Posts in `codes` are added to the search index. `watermark` is the archive watermark before this batch: the archive
    holds no event above it. Raises ConflictingEvent and EventsRefused.
    """
    with refusals():
        rows = [stored(row) for row in rows]
    held: dict[int, EventRow] = {}
    for chunk in chunks([row.number for row in rows if row.number <= watermark], IDS_PER_QUERY):
        found = await event_rows(connection, statements.events_by_number(), {"numbers": chunk})
        held |= {row.number: row for row in found}
    for row in rows:
        if row.number in held and not same_event(held[row.number], row):
            raise ConflictingEvent(row.number)
    await _insert(connection, [row for row in rows if row.number not in held], codes, watermark)


async def erased(connection: AsyncConnection, rows: Sequence[EventRow], watermark: int) -> list[EventRow]:
    """Return the rows, emptying the texts in late rows of users whose erasure is in the archive.

    A row is late if its number is not above the watermark. Executes no statement if no late row is of a kind that has
    texts.
    """
    late = {row.actor for row in rows if row.number <= watermark and row.kind in TEXTS}
    erasures = await by_owners(connection, "actor", late, [USER_ERASURE], 0, len(rows)) if late else []
    gone = {row.actor for row in erasures}
    return [without_texts(row) if row.actor in gone else row for row in rows]


async def lock(connection: AsyncConnection, store: str) -> int:
    """Lock out other writers until the transaction ends. Return the archive watermark. Raises ArchiveChanged."""
    bound = await connection.execute(update(STATE).where(STATE.c.store == store).values(store=store))
    if bound.rowcount != 1:
        raise ArchiveChanged
    return int((await connection.execute(statements.watermark())).scalar_one())


async def insert_late(connection: AsyncConnection, rows: Sequence[EventRow], codes: Codes, store: str) -> int:
    """Insert and index the rows that the archive lacks. Return the archive watermark.

    Raises ArchiveChanged if the archive is bound to another store or a row is above the watermark: only the archiver
    inserts rows above the watermark.
    """
    watermark = await lock(connection, store)
    if any(row.number > watermark for row in rows):
        raise ArchiveChanged
    rows = await erased(connection, rows, watermark)
    held: set[int] = set()
    for chunk in chunks([row.number for row in rows], IDS_PER_QUERY):
        held |= set(await connection.scalars(select(EVENTS.c.number).where(EVENTS.c.number.in_(chunk))))
    await _insert(connection, [stored(row) for row in rows if row.number not in held], codes, watermark)
    return watermark


async def _insert(connection: AsyncConnection, new: Sequence[EventRow], codes: Codes, watermark: int) -> None:
    """Insert rows, and apply the deletions, unfollows, likes, unlikes, reposts, undone reposts and closed reports.

    Events of these kinds that the archive already holds are applied to rows that arrive late.
    """
    later = await _later(connection, [row for row in new if row.number <= watermark])
    deleted = {row.subject for row in [*new, *later] if row.kind == DELETION}
    written = [redacted(row) if row.kind == POST and row.number in deleted else row for row in new]
    names = (*EventRow._fields, *LIST_COLUMNS)
    await add_rows(connection, EVENTS, names, [(*row, *list_owners(row)) for row in written])
    with refusals():
        await notifications.add(connection, written)
        await list_members.add(connection, written)
    await public_posts.add(connection, written, watermark)
    deletions = [row.subject for row in new if row.kind == DELETION and row.subject is not None]
    await redact(connection, deletions)
    live = [codes[row.number] for row in written if row.kind == POST and row.number in codes]
    await index.add(connection, live, watermark)
    pairs = {(row.actor, row.subject) for row in new if row.kind == FOLLOW}
    ended = [row for row in new if row.kind == UNFOLLOW]
    ended += [row for row in later if row.kind == UNFOLLOW and (row.actor, row.subject) in pairs]
    changes = [row for row in [*new, *later] if row.kind in (REPOST, UNREPOST)]
    if changes:
        parameters = [{"change": row.number, "user": row.actor, "original": row.subject} for row in changes]
        await connection.execute(statements.end_reposts(), parameters)
    if ended:
        parameters = [{"unfollow": row.number, "follower": row.actor, "followee": row.subject} for row in ended]
        await connection.execute(statements.end_follows(), parameters)
    closed = [row for row in [*new, *later] if row.kind == REPORTS_CLOSED]
    if closed:
        parameters = [{"event": row.number, "of": row.subject} for row in closed]
        await connection.execute(statements.close_reports(), parameters)
    await _end_likes(connection, new, watermark)


async def _end_likes(connection: AsyncConnection, new: Sequence[EventRow], watermark: int) -> None:
    """Mark likes as ended by later likes and unlikes of the same user and post.

    New likes and unlikes end earlier likes in the archive, and archived likes and unlikes end likes that arrive late.
    """
    ending = [row for row in new if row.kind in (LIKE, UNLIKE)]
    late = [row for row in ending if row.kind == LIKE and row.number <= watermark]
    for post in dict.fromkeys(row.subject for row in late):
        of_pair = (EVENTS.c.subject == post) & EVENTS.c.actor.in_([row.actor for row in late if row.subject == post])
        rows = await event_rows(
            connection, statements.events().where(of_pair, EVENTS.c.number > min(row.number for row in late))
        )
        ending += [row for row in rows if row.kind in LIKE_KINDS]
    if ending:
        parameters = [{"event": row.number, "user": row.actor, "post": row.subject} for row in ending]
        await connection.execute(statements.end_likes(), parameters)


async def redact(connection: AsyncConnection, events: Sequence[int]) -> None:
    """Remove the content of the posts among these events, and their index entries, notifications and public listing."""
    for chunk in chunks(events, statements.MAX_LIST_LENGTH):
        posts = await posts_by_id(connection, chunk)
        if posts:
            await connection.execute(statements.redact_posts(chunk))
            await index.remove(connection, map(index.indexed, posts))
            await notifications.remove(connection, [post.number for post in posts])
            await public_posts.remove(connection, [post.number for post in posts])


async def _later(connection: AsyncConnection, late: Sequence[EventRow]) -> list[EventRow]:
    """Return the archived events that may delete or end posts, follows, reposts and reports that arrive late.

    A row is late if its number is not above the watermark: it arrives after a failover of the store, or because a cut
    of a hot window or a repair found that it was missing.
    """
    found: list[EventRow] = []
    for kind, late_kind in (
        (DELETION, POST),
        (UNFOLLOW, FOLLOW),
        (REPOST, REPOST),
        (UNREPOST, REPOST),
        (REPORTS_CLOSED, REPORT),
    ):
        subjects = {row.number if kind == DELETION else row.subject for row in late if row.kind == late_kind}
        for chunk in chunks(sorted(subject for subject in subjects if subject is not None), IDS_PER_QUERY):
            query = statements.events().where(EVENTS.c.subject.in_(chunk), EVENTS.c.kind == kind)
            found += await event_rows(connection, query.where(EVENTS.c.number > min(row.number for row in late)))
    return found


async def add_credentials(connection: AsyncConnection, credentials: Sequence[Credential]) -> None:
    """Insert credentials, or replace a user's older ones. Raises EventsRefused if another user has the login."""
    newest = {each.user: each for each in sorted(credentials, key=lambda each: each.number)}
    for chunk in chunks(list(newest.values()), IDS_PER_QUERY):
        columns = select(CREDENTIALS.c.user, CREDENTIALS.c.number)
        rows = await connection.execute(columns.where(CREDENTIALS.c.user.in_([each.user for each in chunk])))
        held: dict[int, int] = {row.user: row.number for row in rows}
        await add_rows(connection, CREDENTIALS, Credential._fields, [each for each in chunk if each.user not in held])
        changed = [each for each in chunk if each.number > held.get(each.user, each.number)]
        if changed:
            parameters = [
                {"owner": each.user, "name": each.login, "secret": each.hash, "at": each.number} for each in changed
            ]
            await connection.execute(statements.change_credentials(), parameters)
