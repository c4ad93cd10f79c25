"""Finds archived posts by their codes, in a transaction that the caller has begun and that reads a snapshot.

The search goes through the numbers in the direction of paging. In a gap of the index it returns all posts. Elsewhere:

1. For each code, find the next segments that have posts with the code.
2. If a post must have several codes, choose the segments of the code that reaches furthest, so that a rare word
   next to a frequent one is found quickly.
3. In the chosen segments, intersect and unite the places of the codes, and read the posts at the resulting places.

The posts are candidates: several terms can share a code, and not all terms of a keyword are looked up.
"""

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache, reduce
from operator import and_
from typing import Any, NamedTuple

from sqlalchemy import CompoundSelect, Select, TextClause, bindparam, literal_column, select, text, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive import postgresql, statements
from graph.archive.codes import Clause
from graph.archive.index import IndexGap, numbers_in, places_in
from graph.archive.pages import actors_of, post_numbers, posts_by_id
from graph.archive.rows import EventRow
from graph.archive.tables import GAPS, SEGMENTS, TERMS
from graph.archive.usage import count_items
from graph.chunks import chunks
from graph.paging import Window

SEGMENTS_AT_ONCE = 8
STEPS_PER_CODE = 10
"""The cost of looking up a code, in small steps (`graph.archive.usage`)."""
ZONES = 16
"""The maximum number of gaps, and ranges between gaps, that one call of `candidates` scans."""


class Candidates(NamedTuple):
    """Rows of posts that may match, in the direction of paging, and what remains of the window (None at its end)."""

    rows: list[EventRow]
    remaining: Window | None


class Reach(NamedTuple):
    """The segments that have posts with some codes, in the direction of paging, up to a bound.

    `bound` is where the rest of the window begins: its `high` when paging forward, else its `low`. It is None if there
    are no more such segments in the window.
    """

    segments: list[int]
    bound: int | None
    forward: bool

    @property
    def depth(self) -> float:
        """How far the reach goes in the direction of paging."""
        if self.bound is None:
            return math.inf
        return -self.bound if self.forward else self.bound


@dataclass(frozen=True, slots=True)
class Zone:
    """The first part of a window: a gap, or a range that the index covers."""

    window: Window
    is_gap: bool


async def candidates(
    connection: AsyncConnection,
    clauses: Sequence[Clause],
    window: Window,
    segments: int,
    hidden: Set[int] = frozenset(),
) -> Candidates:
    """Return up to `window.count` of the next posts that satisfy all clauses, and perhaps some that do not.

    The texts of posts by `hidden` authors are not read. Reads up to `segments` segments of each code, so the result can
    have fewer posts, or none, before the window is finished. Four to six statements if the first segment has enough
    posts, one more for each further group of 2, 4 and then 8 segments, and one more on PostgreSQL.
    """
    if connection.dialect.name == "postgresql":  # the other databases read a snapshot by default
        await connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
    rest: Window | None = window
    numbers: list[int] = []
    for _ in range(ZONES):
        if rest is None or numbers:
            break
        zone = await _zone(connection, rest)
        if zone.is_gap:
            numbers, bound = await _scan(connection, zone.window)
        else:
            numbers, bound = await _look_up(connection, clauses, zone.window, segments)
            if bound is not None:
                return Candidates(await _rows(connection, numbers, window, hidden), window.beyond(bound))
        rest = window.beyond(_end(zone.window) if bound is None else bound)
    return Candidates(await _rows(connection, numbers, window, hidden), rest)


async def _rows(
    connection: AsyncConnection, numbers: Sequence[int], window: Window, hidden: Set[int]
) -> list[EventRow]:
    """Return the rows of posts, in the direction of paging. Posts by hidden authors are left out and not read."""
    if hidden and numbers:
        authors = await actors_of(connection, numbers)
        numbers = [number for number in numbers if authors.get(number) not in hidden]
    rows = await posts_by_id(connection, numbers)
    return sorted(rows, key=lambda row: row.number, reverse=window.forward)


async def _zone(connection: AsyncConnection, window: Window) -> Zone:
    """Return the zone at the beginning of the window. One statement."""
    bound = {"bound": window.high if window.forward else window.low}
    end, gap = 0, None
    for is_next, first, last in await connection.execute(_landmarks(window.forward), bound):
        if is_next:
            gap = IndexGap(first, last)
        else:
            end = max(end, last)
    if window.forward:
        if window.high > end + 1:
            return Zone(replace(window, low=max(window.low, end)), is_gap=True)
        if gap is None:
            return Zone(window, is_gap=False)
        inside = gap.last >= window.high - 1
        return Zone(replace(window, low=max(window.low, gap.first - 1 if inside else gap.last)), is_gap=inside)
    if window.low >= end:
        return Zone(window, is_gap=True)
    if gap is None:
        return Zone(replace(window, high=min(window.high, end + 1)), is_gap=False)
    inside = gap.first <= window.low + 1
    return Zone(replace(window, high=min(window.high, gap.last + 1 if inside else gap.first)), is_gap=inside)


@cache
def _landmarks(forward: bool) -> CompoundSelect[Any]:
    """Return the statement for the newest segment, the newest gap, and the next gap from the parameter `bound` on.

    The first column is 1 for the next gap, otherwise 0.
    """
    newest = [
        select(literal_column("0").label("next"), table.c.first, table.c.last).order_by(table.c.first.desc())
        for table in (SEGMENTS, GAPS)
    ]
    gap = select(literal_column("1").label("next"), GAPS.c.first, GAPS.c.last)
    if forward:
        gap = gap.where(GAPS.c.first < bindparam("bound")).order_by(GAPS.c.first.desc())
    else:
        gap = gap.where(GAPS.c.last > bindparam("bound")).order_by(GAPS.c.first)
    return union_all(*(select(part.limit(1).subquery()) for part in (*newest, gap)))


def _end(window: Window) -> int:
    """Return the bound from which the search continues after a window."""
    return window.low + 1 if window.forward else window.high - 1


async def _scan(connection: AsyncConnection, zone: Window) -> tuple[list[int], int | None]:
    """Return the numbers of the next posts in a gap, and the bound of the rest, or None if the gap is finished."""
    numbers = await post_numbers(connection, zone)
    return numbers, numbers[-1] if len(numbers) == zone.count else None


async def _look_up(
    connection: AsyncConnection, clauses: Sequence[Clause], zone: Window, count: int
) -> tuple[list[int], int | None]:
    """Return the numbers of the next posts that satisfy the clauses, and the bound of the rest, or None at the end."""
    codes = sorted({code for clause in clauses for entry in clause for code in entry})
    low = await _first_segment(connection, zone.low + 1) if zone.low else 1
    reaches = await _reaches(connection, codes, replace(zone, low=low - 1, count=count))
    reach = furthest([nearest([furthest([reaches[code] for code in entry]) for entry in clause]) for clause in clauses])
    numbers: list[int] = []
    for some in growing_chunks(reach.segments, SEGMENTS_AT_ONCE):
        found, last = await _matches(connection, clauses, codes, some)
        found.sort(reverse=zone.forward)
        numbers += [number for number in found if zone.low < number < zone.high]
        if len(numbers) >= zone.count:
            if len(numbers) > zone.count or some[-1] != reach.segments[-1]:
                bound = numbers[zone.count - 1] if len(numbers) > zone.count else some[-1] if zone.forward else last
                return numbers[: zone.count], bound
            break
    return numbers, reach.bound


def growing_chunks(items: Sequence[int], limit: int) -> Iterator[Sequence[int]]:
    """Yield the items in slices of 1, 2, 4 and so on, up to `limit`. The first suffices for frequent words."""
    start, size = 0, 1
    while start < len(items):
        yield items[start : start + size]
        start, size = start + size, min(limit, 2 * size)


async def _first_segment(connection: AsyncConnection, number: int) -> int:
    """Return the first number of the newest segment that begins at or before `number`, or `number` if none does."""
    query = select(SEGMENTS.c.first).where(SEGMENTS.c.first <= number).order_by(SEGMENTS.c.first.desc()).limit(1)
    return (await connection.execute(query)).scalar() or number


async def _reaches(connection: AsyncConnection, codes: Sequence[int], window: Window) -> dict[int, Reach]:
    """Return, for each code, the first `window.count` segments in the window that have posts with the code."""
    count_items(STEPS_PER_CODE * len(codes))
    found: dict[int, list[int]] = {code: [] for code in codes}
    parameters = {"low": window.low, "high": window.high, "count": window.count}
    for some in chunks(codes, statements.MAX_UNION_TERMS):
        if connection.dialect.name == "postgresql":
            query: Select[Any] | TextClause = postgresql.segments_of_codes(window.forward)
            rows = await connection.execute(query, parameters | {"codes": some})
        else:
            query = statements.segments_of_codes(statements.terms_for(len(some)), window.forward)
            rows = await connection.execute(query, parameters | statements.code_parameters(some))
        for place, segment in rows:
            found[some[place]].append(segment)
    return {code: _reach(sorted(segments, reverse=window.forward), window) for code, segments in found.items()}


def _reach(segments: list[int], window: Window) -> Reach:
    """Return the reach of a code. When paging backward, the last segment only shows where the rest begins."""
    if len(segments) < window.count:
        return Reach(segments, None, window.forward)
    if window.forward:
        return Reach(segments, segments[-1], window.forward)
    return Reach(segments[:-1], segments[-1] - 1, window.forward)


def furthest(reaches: Sequence[Reach]) -> Reach:
    """Return the furthest reach. Segments of posts that have all codes are in every reach, including the furthest."""
    return max(reaches, key=lambda reach: reach.depth)


def nearest(reaches: Sequence[Reach]) -> Reach:
    """Return the union of reaches, for posts that have any of the codes. It ends where the shortest reach ends."""
    end = min(reaches, key=lambda reach: reach.depth)
    among = {segment for reach in reaches for segment in reach.segments}
    if end.bound is not None:
        among = {segment for segment in among if (segment >= end.bound if end.forward else segment <= end.bound)}
    return Reach(sorted(among, reverse=end.forward), end.bound, end.forward)


def satisfying(clauses: Sequence[Clause], places: Mapping[int, Set[int]]) -> Set[int]:
    """Return the places of the posts of a segment that satisfy all clauses, from the places of each code."""
    return reduce(and_, [_satisfying_any(clause, places) for clause in clauses])


def _satisfying_any(clause: Clause, places: Mapping[int, Set[int]]) -> Set[int]:
    entries = [reduce(and_, [places.get(code, frozenset()) for code in entry]) for entry in clause]
    return frozenset().union(*entries)


async def _matches(
    connection: AsyncConnection, clauses: Sequence[Clause], codes: Sequence[int], segments: Sequence[int]
) -> tuple[list[int], int]:
    """Return the numbers of the posts in segments that satisfy the clauses, and the last number of these segments."""
    places: dict[int, dict[int, frozenset[int]]] = {segment: {} for segment in segments}
    covers: list[tuple[int, int, bytes]] = []
    for some in chunks(codes, statements.MAX_LIST_LENGTH):
        query = _segments_and_terms() if not covers else _terms()
        for code, segment, last, held in await connection.execute(query, {"codes": some, "segments": list(segments)}):
            if last:
                covers.append((segment, last, held))
            else:
                places[segment][code] = frozenset(places_in(held))
    found: list[int] = []
    for segment, _, posts in covers:
        matching = satisfying(clauses, places[segment])
        if matching:
            numbers = numbers_in(posts)
            found += map(numbers.__getitem__, matching if max(matching) < len(numbers) else _placed(matching, numbers))
    return found, max((last for _, last, _ in covers), default=0)


def _placed(places: Set[int], numbers: Sequence[int]) -> list[int]:
    """Return the places that exist in a segment with these numbers. A damaged row may hold higher places."""
    return [place for place in places if place < len(numbers)]


@cache
def _terms() -> Select[Any]:
    """Return the statement for the index rows of the parameters `codes` in the parameters `segments`."""
    of_codes = TERMS.c.code.in_(bindparam("codes", expanding=True))
    in_segments = TERMS.c.segment.in_(bindparam("segments", expanding=True))
    return select(TERMS.c.code, TERMS.c.segment, literal_column("0").label("last"), TERMS.c.places).where(
        of_codes, in_segments
    )


@cache
def _segments_and_terms() -> CompoundSelect[Any]:
    """Return the statement for the rows of `_terms` and for the segments themselves, whose `last` is not 0."""
    chosen = SEGMENTS.c.first.in_(bindparam("segments", expanding=True))
    segments = select(literal_column("0").label("code"), SEGMENTS.c.first, SEGMENTS.c.last, SEGMENTS.c.posts)
    return union_all(_terms(), segments.where(chosen))
