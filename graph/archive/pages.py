"""Reads posts and events from the archive, in a transaction that the caller has begun."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Select, TextClause, select
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive import postgresql, statements
from graph.archive.rows import LIKE, POSTS, EventRow, LikeRow
from graph.archive.statements import ListScan
from graph.archive.tables import EVENTS
from graph.archive.usage import count_rows
from graph.chunks import chunks
from graph.paging import Window
from graph.post_lists import TIMELINE, PostList

T = TypeVar("T")

IDS_PER_QUERY = 2000


async def event_rows(
    connection: AsyncConnection, query: Select[Any] | TextClause, parameters: dict[str, Any] | None = None
) -> list[EventRow]:
    """Execute a statement that selects the columns of `EventRow`, and return its rows."""
    found = [EventRow(*row) for row in await connection.execute(query, parameters)]
    count_rows(len(found))
    return found


async def first_rows(
    connection: AsyncConnection, query: Select[Any], after: int, up_to: int, limit: int
) -> list[Sequence[Any]]:
    """Return the first `limit` rows of a statement whose first column, a primary key, is in (`after`, `up_to`]."""
    if connection.dialect.name == "postgresql":
        await connection.execute(postgresql.IN_INDEX_ORDER)
    [key, *_] = query.selected_columns
    page = query.where(key > after, key <= up_to).order_by(key).limit(limit)
    return list(await connection.execute(page))


async def posts_by_id(connection: AsyncConnection, ids: Collection[int]) -> list[EventRow]:
    """Return the rows of live posts with these ids. One query per 2,000 ids."""
    # as a condition in SQL, the kind would make planners search all posts
    return [row for row in await rows(connection, ids) if row.kind in POSTS]


async def rows(connection: AsyncConnection, ids: Collection[int]) -> list[EventRow]:
    """Return the existing rows of the events with these ids. One query per 2,000 ids."""
    found: list[EventRow] = []
    for chunk in chunks(list(dict.fromkeys(ids)), IDS_PER_QUERY):
        found += await event_rows(connection, statements.events_by_number(), {"numbers": chunk})
    return found


async def post_numbers(connection: AsyncConnection, window: Window) -> list[int]:
    """Return the numbers of the posts of all authors in a window, in the direction of paging. One index scan."""
    if connection.dialect.name == "postgresql":
        query: Select[Any] | TextClause = postgresql.post_numbers(window.forward)
    else:
        query = statements.post_numbers(connection.dialect.name, window.forward)
    parameters = {"low": window.low, "high": window.high, "count": window.count}
    return list(await connection.scalars(query, parameters))


async def has_posts(connection: AsyncConnection, after: int, up_to: int) -> bool:
    """Return True if there is a post with a number in (`after`, `up_to`]."""
    return bool(await post_numbers(connection, Window(1, True, after, up_to + 1)))


async def merge(connection: AsyncConnection, authors: Collection[int], window: Window) -> list[EventRow]:
    """Return one window of the merged timelines of these authors, in the direction of paging."""
    among = sorted(set(authors))
    parameters: dict[str, Any] = {"low": window.low, "high": window.high, "count": window.count}
    if connection.dialect.name == "postgresql":
        return await event_rows(connection, postgresql.merged(window.forward), parameters | {"owners": among})
    if connection.dialect.name != "mysql":
        query = statements.first_events(connection.dialect.name, TIMELINE.column, None, window.forward)
        return await event_rows(connection, query, parameters | {"owners": among})
    if len(among) > statements.MAX_UNION_TERMS:
        among = list(await connection.scalars(statements.leading_authors(among, window.forward), parameters))
    terms = statements.terms_for(len(among))
    parameters |= statements.scan_parameters([_scan(author, window) for author in among], terms)
    return await event_rows(connection, statements.merged_by_union(terms, window.forward), parameters)


async def by_owners(
    connection: AsyncConnection, owner: str, owners: Collection[int], kinds: Sequence[str], after: int, limit: int
) -> list[EventRow]:
    """Return the first `limit` events with one of these owners and one of these kinds, and a number above `after`.

    `owner` is the column that holds the owners: `actor` or `subject`.
    """
    if not kinds:
        return []
    found: list[EventRow] = []
    for chunk in chunks(sorted(set(owners)), statements.MAX_LIST_LENGTH):
        found += await _first_events(connection, owner, chunk, kinds, Window(limit, False, after))
    return sorted(found)[:limit]


async def _first_events(
    connection: AsyncConnection, owner: str, owners: Sequence[int], kinds: Sequence[str], window: Window
) -> list[EventRow]:
    parameters: dict[str, Any] = {"low": window.low, "high": window.high, "count": window.count}
    parameters["owners"] = owners
    if connection.dialect.name == "postgresql":
        parameters["kinds"] = kinds
        return await event_rows(connection, postgresql.first_events(owner, window.forward), parameters)
    query = statements.first_events(connection.dialect.name, owner, tuple(kinds), window.forward)
    return await event_rows(connection, query, parameters)


async def post_rows(
    connection: AsyncConnection, reads: Sequence[tuple[int, Window]], post_list: PostList
) -> list[list[EventRow]]:
    """Return, for each (owner, window), the rows of the posts in the owner's list in the direction of paging."""
    found: list[list[EventRow]] = [[] for _ in reads]
    for forward in (True, False):
        positions = [position for position, (_, window) in enumerate(reads) if window.forward is forward]
        scans = [_scan(*reads[position]) for position in positions]
        union = partial(statements.slices, forward=forward, post_list=post_list)
        for index, *row in await _scanned(connection, union, postgresql.slices(forward, post_list), scans):
            found[positions[index]].append(EventRow(*row))
        for position in positions:
            found[position].sort(key=lambda row: row.number, reverse=forward)
    return found


async def post_counts(connection: AsyncConnection, reads: Sequence[tuple[int, int]], post_list: PostList) -> list[int]:
    """Return, for each (owner, id), the number of posts in the owner's list up to and including the id."""
    union = partial(statements.post_counts, post_list=post_list)
    return await _counts(connection, reads, union, postgresql.post_counts(post_list))


async def like_counts(connection: AsyncConnection, reads: Sequence[tuple[int, int]]) -> list[int]:
    """Return, for each (post, number), the count of the post's live likes up to and including the number."""
    union = partial(statements.counts, owner="subject", kind=LIKE)
    return await _counts(connection, reads, union, postgresql.counts("subject", LIKE))


async def _counts(
    connection: AsyncConnection,
    reads: Sequence[tuple[int, int]],
    union: Callable[[int], Select[Any]],
    array: TextClause,
) -> list[int]:
    scans = [ListScan(id_, 0, up_to + 1, 0) for id_, up_to in reads]
    rows = await _scanned(connection, union, array, scans)
    counts = {position: int(count) for position, count in rows}
    return [counts[position] for position in range(len(reads))]


async def post_ids(connection: AsyncConnection, owner: int, low: int, high: int, post_list: PostList) -> set[int]:
    """Return the ids in (`low`, `high`] of the posts in an owner's list."""
    if connection.dialect.name == "postgresql":
        parameters = {"owner": owner, "low": low, "high": high + 1}
        return set(await connection.scalars(postgresql.post_ids(post_list), parameters))
    within = (EVENTS.c.number > low) & (EVENTS.c.number <= high)
    query = select(EVENTS.c.number).where(statements.in_list(post_list, owner), within)
    return set(await connection.scalars(query.with_hint(EVENTS, statements.list_index(post_list), "mysql")))


async def owners(connection: AsyncConnection, post_list: PostList, after: int, limit: int) -> list[int]:
    """Return the first `limit` owners with ids above `after` that have posts in their list of the kind `post_list`."""
    return await _owners(connection, post_list.column, post_list.kind, after, limit)


async def liked_posts(connection: AsyncConnection, after: int, limit: int) -> list[int]:
    """Return the first `limit` posts with ids above `after` that have live likes."""
    return await _owners(connection, "subject", LIKE, after, limit)


async def _owners(connection: AsyncConnection, column: str, kind: str | None, after: int, limit: int) -> list[int]:
    if connection.dialect.name == "postgresql":
        await connection.execute(postgresql.IN_INDEX_ORDER)
    return list(await connection.scalars(statements.owners(column, kind, after, limit)))


async def _scanned(
    connection: AsyncConnection, union: Callable[[int], Select[Any]], array: TextClause, scans: Sequence[ListScan]
) -> list[Sequence[Any]]:
    """Run scans, up to 256 per statement, and return their rows. Each row begins with its scan's position."""
    found: list[Sequence[Any]] = []
    for start in range(0, len(scans), statements.MAX_UNION_TERMS):
        part = scans[start : start + statements.MAX_UNION_TERMS]
        if connection.dialect.name == "postgresql":
            rows = await connection.execute(array, postgresql.scan_parameters(part))
        else:
            terms = statements.terms_for(len(part))
            rows = await connection.execute(union(terms), statements.scan_parameters(part, terms))
        found += [(start + index, *row) for index, *row in rows]
    count_rows(len(found))
    return found


async def kinds_of(connection: AsyncConnection, ids: Collection[int]) -> dict[int, str]:
    """Return the kinds of these events by number, without those that the archive lacks. One query per 2,000 ids."""
    found: dict[int, str] = {}
    for chunk in chunks(list(dict.fromkeys(ids)), IDS_PER_QUERY):
        query = select(EVENTS.c.number, EVENTS.c.kind).where(EVENTS.c.number.in_(chunk))
        found.update((number, kind) for number, kind in await connection.execute(query))
    return found


async def actors_of(connection: AsyncConnection, ids: Collection[int]) -> dict[int, int]:
    """Return the actors of these events by number, without those that the archive lacks. One query per 2,000 ids."""
    found: dict[int, int] = {}
    for chunk in chunks(list(dict.fromkeys(ids)), IDS_PER_QUERY):
        query = select(EVENTS.c.number, EVENTS.c.actor).where(EVENTS.c.number.in_(chunk))
        found.update((number, actor) for number, actor in await connection.execute(query))
    return found


async def likes_between(connection: AsyncConnection, posts: Collection[int], users: Collection[int]) -> list[LikeRow]:
    """Return the likes of these posts by these users, including ended ones. One query per 900 posts and 900 users."""
    found: list[LikeRow] = []
    for some_posts in chunks(sorted(set(posts)), statements.MAX_LIST_LENGTH):
        for some_users in chunks(sorted(set(users)), statements.MAX_LIST_LENGTH):
            rows = await connection.execute(statements.likes_between(some_posts, some_users))
            found += [LikeRow(*row) for row in rows]
    return found


async def live_likes(connection: AsyncConnection, owner: str, id_: int, window: Window) -> list[LikeRow]:
    """Return the first live likes of a post (`subject`) or by a user (`actor`) in a window, in paging order."""
    rows = await _first_events(connection, owner, [id_], [LIKE], window)
    return [LikeRow(row.number, row.actor, row.subject, None) for row in rows if row.subject is not None]


def _scan(owner: int, window: Window) -> ListScan:
    return ListScan(owner, window.low, window.high, window.count)
