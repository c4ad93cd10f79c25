"""The table of the posts on the public timeline. Callers begin the transactions.

The table holds the listed posts, except plain reposts and deleted posts, of authors who are not suspended. Each batch
of the archiver updates the table in its own transaction, and the lock on the watermark lets one transaction write at a
time.

For each author, a row of `public_moves` holds the newest decision about the author's suspension: the one with the
highest number, so that decisions can be archived in any order and more than once. A decision starts a *move* of the
author's posts out of the table or back, newest first, which the worker performs in steps (`graph.archiver.moves`).
The column `rest` is the progress: the posts below it have not been moved. A newer decision starts the move again. Pages
leave out suspended authors whose posts are still being moved out.

The row of author 0 is the *fill* of an archive that is older than the table: posts below the `rest` of this row may be
missing from the table. Pages read these posts from `events`.
"""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, NamedTuple

from sqlalchemy import CompoundSelect, TextClause, bindparam, delete, select, text, union_all, update
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive import postgresql, statements
from graph.archive.inserts import add_rows
from graph.archive.pages import IDS_PER_QUERY, post_rows, posts_by_id
from graph.archive.rows import POST, SUSPENSION, UNSUSPENSION, EventRow, list_owners
from graph.archive.tables import PUBLIC_MOVES, PUBLIC_POSTS
from graph.chunks import chunks
from graph.model import MAX_NUMBER
from graph.paging import Window
from graph.post_lists import TIMELINE

ALL = 0
"""The author in the row that records the progress of the fill; it stands for all authors."""
FEW = 250
"""The maximum number of suspended authors with unfinished moves that a page leaves out."""
SCANNED = 20_000
"""The maximum number of posts in the table that a read scans to find posts of authors who are not left out."""
SCANNED_EVENTS = 2000
"""The same limit for a read of `events`, below the progress of the fill."""
TABLE, OLD = "public_posts", "events"
MOVE_COLUMNS = tuple(PUBLIC_MOVES.c.keys())
"""The columns of `PUBLIC_MOVES`, in the order of the fields of `Move`."""


class PublicPage(NamedTuple):
    """Rows of posts in the direction of paging, and the part of the window still to read, or None if there is none."""

    rows: list[EventRow]
    remaining: Window | None


class Move(NamedTuple):
    """A row of `public_moves`. `unmoved_below` is the column `rest`."""

    author: int
    number: int
    suspended: int
    unmoved_below: int


class SuspensionDecision(NamedTuple):
    """The newest decision about the suspension of an author, and how far the author's posts have been moved."""

    suspended: bool
    number: int
    unmoved_below: int


NO_DECISION = SuspensionDecision(False, 0, 0)


def author_of(row: EventRow) -> int | None:
    """Return the author if a row is a post for the public timeline, else None.

    `stored` must have returned the row. Suspensions are not considered.
    """
    return list_owners(row)[0] if row.kind == POST else None


async def add(connection: AsyncConnection, rows: Sequence[EventRow], watermark: int) -> None:
    """Add the posts among new rows, and record the decisions about suspensions.

    `watermark` is the archive watermark before the rows were inserted. Two statements for posts, two or three for
    suspensions, and one or two more for late posts: the table may still hold a post whose row in `events` was lost.
    """
    await decide(connection, [row for row in rows if row.kind in (SUSPENSION, UNSUSPENSION) and row.body])
    listed = {row.number: author for row in rows if (author := author_of(row)) is not None}
    suspended = await suspended_among(connection, set(listed.values()))
    added = {number: author for number, author in listed.items() if author not in suspended}
    late = {number: author for number, author in added.items() if number <= watermark}
    await _add_missing(connection, late)
    await _insert(connection, {number: author for number, author in added.items() if number not in late})


async def _insert(connection: AsyncConnection, authors: Mapping[int, int]) -> None:
    await add_rows(connection, PUBLIC_POSTS, ("number", "author"), sorted(authors.items()))


async def remove(connection: AsyncConnection, posts: Sequence[int]) -> None:
    """Remove posts from the table. One statement per 900."""
    for chunk in chunks(posts, statements.MAX_LIST_LENGTH):
        await connection.execute(delete(PUBLIC_POSTS).where(PUBLIC_POSTS.c.number.in_(chunk)))


async def decide(connection: AsyncConnection, events: Sequence[EventRow]) -> None:
    """Record decisions about suspensions, unless newer ones about the same authors are recorded, and start moves."""
    newest = {row.actor: row for row in sorted(events)}
    for chunk in chunks(list(newest.values()), IDS_PER_QUERY):
        held = await decisions(connection, [row.actor for row in chunk])
        rows = [
            Move(row.actor, row.number, int(row.kind == SUSPENSION), MAX_NUMBER + 1)
            for row in chunk
            if row.number > held.get(row.actor, NO_DECISION).number
        ]
        replaced = [row.author for row in rows if row.author in held]
        if replaced:
            await connection.execute(delete(PUBLIC_MOVES).where(PUBLIC_MOVES.c.author.in_(replaced)))
        await add_rows(connection, PUBLIC_MOVES, MOVE_COLUMNS, rows)


async def decisions(connection: AsyncConnection, authors: Collection[int]) -> dict[int, SuspensionDecision]:
    """Return the newest decision about each author, if there is one. One statement per 2,000 authors."""
    found: dict[int, SuspensionDecision] = {}
    for chunk in chunks(sorted(authors), IDS_PER_QUERY):
        for row in await connection.execute(select(PUBLIC_MOVES).where(PUBLIC_MOVES.c.author.in_(chunk))):
            found[row.author] = SuspensionDecision(bool(row.suspended), row.number, row.rest)
    return found


async def suspended_among(connection: AsyncConnection, authors: Collection[int]) -> set[int]:
    """Return the authors among these who are suspended. One statement per 2,000 authors."""
    return {author for author, held in (await decisions(connection, authors)).items() if held.suspended}


async def page(connection: AsyncConnection, window: Window, hidden: Set[int]) -> PublicPage:
    """Return up to `window.count` of the next posts, and the rest of the window.

    Posts by `hidden` authors are left out, and so are those by suspended authors that have yet to be moved out. The
    page can have fewer posts, or none, even if part of the window remains. Three statements, and up to two more if some
    of the next posts are left out.
    """
    progress = [*await connection.execute(_progress())]
    fill = next((rest for author, rest in progress if author == ALL), 0)
    left_out = hidden | {author for author, _ in progress if author != ALL}
    source, zone, end = TABLE, window, None
    if window.forward and window.low < fill - 1:
        if window.high > fill:
            zone, end = replace(window, low=fill - 1), fill
        else:
            source = OLD
    elif window.low < fill - 1:
        source, end = OLD, min(fill, window.high) - 1
        zone = replace(window, high=end + 1)
    numbers, bound = await _scan(connection, source, zone, left_out)
    rows = sorted(await posts_by_id(connection, numbers), key=lambda row: row.number, reverse=window.forward)
    bound = end if bound is None else bound
    return PublicPage(rows, None if bound is None else window.beyond(bound))


async def _scan(
    connection: AsyncConnection, source: str, window: Window, left_out: Set[int]
) -> tuple[list[int], int | None]:
    """Return the numbers of the next posts, and the number where the scan ended, or None if the window is finished."""
    kind, forward = connection.dialect.name, window.forward
    bounds = {"low": window.low, "high": window.high}
    read = [*await connection.execute(_numbers(kind, source, forward), bounds | {"count": window.count})]
    found = [number for number, author in read if author is not None and author not in left_out]
    if len(read) < window.count:
        return found, None
    end = int(read[-1].number)
    if len(found) == window.count:
        return found, end
    bounds["high" if forward else "low"] = end
    place = {"place": (SCANNED if source == TABLE else SCANNED_EVENTS) - 1}
    last: int | None = await connection.scalar(_number_at(kind, source, forward), bounds | place)
    if last is not None:
        bounds["low" if forward else "high"] = last + (-1 if forward else 1)
    wanted = window.count - len(found)
    query, others = _numbers(kind, source, forward, of_others=bool(left_out)), {"left_out": sorted(left_out)}
    more = [*await connection.scalars(query, {**bounds, "count": wanted, **(others if left_out else {})})]
    return found + more, more[-1] if len(more) == wanted else last


@cache
def _progress() -> CompoundSelect[Any]:
    """Return the statement for the progress of the fill and of up to 250 moves of suspended authors' posts."""
    columns = select(PUBLIC_MOVES.c.author, PUBLIC_MOVES.c.rest)
    moving = columns.where(PUBLIC_MOVES.c.rest > 0, PUBLIC_MOVES.c.suspended == 1)
    some = moving.order_by(PUBLIC_MOVES.c.rest.desc()).limit(FEW).subquery()
    return union_all(columns.where(PUBLIC_MOVES.c.author == ALL), select(some.c.author, some.c.rest))


def _scan_of(kind: str, source: str, forward: bool, condition: str = "") -> str:
    """Return the SQL of a scan of one index between two numbers, in the direction of paging, without a LIMIT."""
    order = "DESC" if forward else "ASC"
    if source == TABLE:
        hint = " FORCE INDEX (PRIMARY)" if kind == "mysql" else ""
        within = f"number > :low AND number < :high{condition}"
        return f"SELECT number, author FROM public_posts{hint} WHERE {within} ORDER BY number {order}"  # noqa: S608
    columns = "SELECT number, listed_by AS author FROM events"
    if kind == "postgresql":
        name = postgresql.POST_KIND
        within = f"(kind, number) > ({name}, :low) AND (kind, number) < ({name}, :high){condition}"
        return f"{columns} WHERE {within} ORDER BY kind {order}, number {order}"
    hint = statements.FORCED_INDEX[kind].format("events_by_kind")
    within = f"kind = '{POST}' AND number > :low AND number < :high{condition}"
    return f"{columns} {hint} WHERE {within} ORDER BY number {order}"


@lru_cache(maxsize=32)
def _numbers(kind: str, source: str, forward: bool, *, of_others: bool | None = None) -> TextClause:
    """Return the statement for (number, author) of the first `count` posts between two numbers.

    If `of_others` is not None, select only listed posts; if it is True, also exclude posts by authors in `left_out`.
    """
    author = "author" if source == TABLE else "listed_by"
    condition = "" if of_others is None else f" AND {author} IS NOT NULL"
    condition += f" AND {author} NOT IN :left_out" if of_others else ""
    query = text(f"{_scan_of(kind, source, forward, condition)} LIMIT :count")
    return query.bindparams(bindparam("left_out", expanding=True)) if of_others else query


@lru_cache(maxsize=16)
def _number_at(kind: str, source: str, forward: bool) -> TextClause:
    """Return the statement for the number of the post at the offset `place` of the scan between two numbers, if any."""
    return text(f"{_scan_of(kind, source, forward)} LIMIT 1 OFFSET :place")


async def next_move(connection: AsyncConnection) -> Move | None:
    """Return the unfinished move with the newest posts, or else the unfinished fill, or None if there is neither."""
    pending = select(PUBLIC_MOVES).where(PUBLIC_MOVES.c.rest > 0)
    query = pending.where(PUBLIC_MOVES.c.author != ALL).order_by(PUBLIC_MOVES.c.rest.desc()).limit(1)
    row = (await connection.execute(query)).first()
    row = row or (await connection.execute(pending.where(PUBLIC_MOVES.c.author == ALL))).first()
    return None if row is None else Move(*row)


async def step(connection: AsyncConnection, limit: int) -> bool:
    """Advance an unfinished move, or the unfinished fill, by up to `limit` posts. Return False if there is neither.

    Up to seven statements.
    """
    move = await next_move(connection)
    if move is None:
        return False
    if move.author == ALL:
        rest = await _fill(connection, move.unmoved_below, limit)
    elif move.suspended:
        rest = await _move_out(connection, move, limit)
    else:
        rest = await _move_in(connection, move, limit)
    await connection.execute(update(PUBLIC_MOVES).where(PUBLIC_MOVES.c.author == move.author).values(rest=rest))
    return True


async def _move_out(connection: AsyncConnection, move: Move, limit: int) -> int:
    """Remove an author's newest posts that a move has not reached. Return the new `rest`."""
    of_author = (PUBLIC_POSTS.c.author == move.author) & (PUBLIC_POSTS.c.number < move.unmoved_below)
    query = select(PUBLIC_POSTS.c.number).where(of_author).limit(limit)
    query = query.order_by(PUBLIC_POSTS.c.author.desc(), PUBLIC_POSTS.c.number.desc())
    query = query.with_hint(PUBLIC_POSTS, "FORCE INDEX (public_posts_by_author)", "mysql")
    numbers = list(await connection.scalars(query))
    await remove(connection, numbers)
    return numbers[-1] if len(numbers) == limit else 0


async def _move_in(connection: AsyncConnection, move: Move, limit: int) -> int:
    """Add an author's newest listed posts that a move has not reached. Return the new `rest`."""
    [rows] = await post_rows(connection, [(move.author, Window(limit, True, 0, move.unmoved_below))], TIMELINE)
    await _add_missing(connection, {row.number: move.author for row in rows if row.kind == POST})
    return rows[-1].number if len(rows) == limit else 0


async def _fill(connection: AsyncConnection, rest: int, limit: int) -> int:
    """Add the newest listed posts of all authors below `rest`. Return the new `rest`."""
    bounds = {"low": 0, "high": rest, "count": limit}
    read = [*await connection.execute(_numbers(connection.dialect.name, OLD, True), bounds)]
    listed = {number: author for number, author in read if author is not None}
    suspended = await suspended_among(connection, set(listed.values()))
    await _add_missing(connection, {post: author for post, author in listed.items() if author not in suspended})
    return int(read[-1].number) if len(read) == limit else 0


async def _add_missing(connection: AsyncConnection, authors: Mapping[int, int]) -> None:
    held = await held_among(connection, authors)
    await _insert(connection, {number: author for number, author in authors.items() if number not in held})


async def held_among(connection: AsyncConnection, posts: Collection[int]) -> dict[int, int]:
    """Return the posts among these that are in the table, with their authors. One statement per 2,000 posts."""
    found: dict[int, int] = {}
    for chunk in chunks(sorted(posts), IDS_PER_QUERY):
        rows = await connection.execute(select(PUBLIC_POSTS).where(PUBLIC_POSTS.c.number.in_(chunk)))
        found.update((number, author) for number, author in rows)
    return found
