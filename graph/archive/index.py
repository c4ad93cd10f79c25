"""The search index of posts, written in transactions that the caller has begun. One transaction writes at a time.

A *segment* covers a range of event numbers and lists the posts in it. The place of a post is its position in this list.
For each code (`graph.archive.codes`) of these posts, a row holds the places of the posts that have the code. A frequent
term takes two bytes per post, and a batch changes at most one row per code and segment.

A *gap* is a range whose posts are not indexed: the archive held them before it had an index, or a version of Fanline
without the index archived them. Searches read the posts of gaps one by one, and also the posts after the newest segment
and gap. The worker closes gaps (`graph.archiver.indexing`). Together, segments and gaps cover all numbers up to the end
of the newest segment or gap, so the index affects only the speed of searches. Stale rows do no harm, because each post
that is found is compared with the filter.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from struct import pack, unpack
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import CompoundSelect, Select, delete, insert, select, union_all, update
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive import statements
from graph.archive.codes import codes_of
from graph.archive.inserts import add_rows
from graph.archive.pages import has_posts, post_numbers
from graph.archive.rows import EventRow
from graph.archive.tables import GAPS, SEGMENTS, TERMS
from graph.chunks import chunks
from graph.model import MAX_NUMBER
from graph.paging import Window

SEGMENT_POSTS = 4096
MAX_PLACES = 1 << 16
"""The maximum number of posts in a segment. Late posts can make a segment longer than SEGMENT_POSTS."""


Placed: TypeAlias = tuple[int, Iterable[int]]
"""The place of a post, and its codes."""


class Segment(NamedTuple):
    """A segment: the first and the last number that it covers, and the numbers of its posts in the order of places.

    In a segment that has not been stored yet, `last` is lower than `first`.
    """

    first: int
    last: int
    posts: list[int]

    @property
    def is_new(self) -> bool:
        """Whether the segment has not been stored yet."""
        return self.last < self.first


class IndexGap(NamedTuple):
    """A range of event numbers, both ends included, whose posts are not indexed."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class IndexedPost:
    """The number of a post and its codes."""

    number: int
    codes: frozenset[int]


def indexed(row: EventRow) -> IndexedPost:
    """Return the number and the codes of the post in a row. About 0.1 ms. Raises ValueError if its body is damaged."""
    return IndexedPost(row.number, frozenset(codes_of(row)))


async def add(connection: AsyncConnection, posts: Iterable[IndexedPost], watermark: int) -> None:
    """Index posts of the archive, in the transaction that inserts them.

    `watermark` is the archive watermark before the transaction. Three to five statements, two more for each further
    segment, and three per 900 codes.
    """
    ordered = sorted(posts, key=lambda post: post.number)
    if not ordered:
        return
    end = await end_of(connection)
    known = max(watermark, end)
    await _add_late(connection, [post for post in ordered if post.number <= known])
    fresh = [post for post in ordered if post.number > known]
    if fresh and await add_gap(connection, end, watermark):
        end = watermark
    while fresh:
        newest = await _segment(connection, from_segment(end))
        is_open = newest is not None and newest.last == end and len(newest.posts) < SEGMENT_POSTS
        segment = newest if newest is not None and is_open else new_segment(end + 1)
        room = SEGMENT_POSTS - len(segment.posts)
        part, fresh = fresh[:room], fresh[room:]
        end = (await _extend(connection, segment, part, part[-1].number)).last


async def add_gap(connection: AsyncConnection, end: int, watermark: int) -> bool:
    """Add a gap if there are posts after the end of the index, up to the watermark. Return True if a gap was added."""
    if end >= watermark or not await has_posts(connection, end, watermark):
        return False
    await connection.execute(insert(GAPS).values(first=end + 1, last=watermark))
    return True


async def end_of(connection: AsyncConnection) -> int:
    """Return the number up to which segments and gaps cover all numbers, or 0 if there are none. One statement."""
    return max(await connection.scalars(newest_ends()), default=0)


@cache
def newest_ends() -> CompoundSelect[Any]:
    """Return the statement for the ends of the newest segment and of the newest gap."""
    newest = [select(table.c.last).order_by(table.c.first.desc()).limit(1).subquery() for table in (SEGMENTS, GAPS)]
    return union_all(*map(select, newest))


async def _add_late(connection: AsyncConnection, posts: Sequence[IndexedPost]) -> None:
    """Add posts to the segments that cover their numbers. Posts in gaps are ignored.

    If a segment is full, each further post in its range gets a separate gap.
    """
    for segment, some in await _by_segment(connection, posts):
        room = max(0, MAX_PLACES - len(segment.posts))
        for post in some[room:]:
            await connection.execute(delete(GAPS).where(GAPS.c.first == post.number))
            await connection.execute(insert(GAPS).values(first=post.number, last=post.number))
        await _extend(connection, segment, some[:room], segment.last)


async def remove(connection: AsyncConnection, posts: Iterable[IndexedPost]) -> None:
    """Remove posts from the index. One statement per segment, and three more per 900 codes."""
    for segment, some in await _by_segment(connection, posts):
        places = {number: place for place, number in enumerate(segment.posts)}
        gone = [(places[post.number], post.codes) for post in some if post.number in places]
        await _remove(connection, segment.first, gone)


async def _by_segment(
    connection: AsyncConnection, posts: Iterable[IndexedPost]
) -> list[tuple[Segment, list[IndexedPost]]]:
    """Return the segments that cover any of these posts, each with its posts. Posts in gaps are left out."""
    found: list[tuple[Segment, list[IndexedPost]]] = []
    first: int | None = None  # the first number of the segment that was read last
    for post in sorted(posts, key=lambda post: post.number, reverse=True):
        if first is None or post.number < first:
            segment = await _segment(connection, from_segment(post.number))
            first = segment.first if segment else 0
            if segment is not None:
                found.append((segment, []))
        if found and found[-1][0].first <= post.number <= found[-1][0].last:
            found[-1][1].append(post)
    return [each for each in found if each[1]]


async def next_gap(connection: AsyncConnection) -> IndexGap | None:
    """Return the newest gap that can be closed, or None. Gaps inside a segment stay, because the segment is full."""
    high = MAX_NUMBER + 1
    while True:
        query = select(GAPS).where(GAPS.c.first < high).order_by(GAPS.c.first.desc()).limit(1)
        row = (await connection.execute(query)).first()
        if row is None:
            return None
        segment = await _segment(connection, from_segment(row.first))
        if segment is None or segment.last < row.first:
            return IndexGap(row.first, row.last)
        high = segment.first


async def close_gap(connection: AsyncConnection, gap: IndexGap, first: int, posts: Mapping[int, IndexedPost]) -> bool:
    """Replace the end of a gap, from the number `first` on, with a segment of the posts that still exist.

    Return False, and change nothing, if the gap has changed or contains posts that are not in `posts`.
    """
    held = (await connection.execute(select(GAPS).where(GAPS.c.first == gap.first))).first()
    numbers = await post_numbers(connection, Window(len(posts) + 1, False, first - 1, gap.last + 1))
    if held is None or held.last != gap.last or not posts.keys() >= set(numbers):
        return False
    await connection.execute(delete(GAPS).where(GAPS.c.first == gap.first))
    if gap.first < first:
        await connection.execute(insert(GAPS).values(first=gap.first, last=first - 1))
    await _extend(connection, new_segment(first), [posts[number] for number in numbers], gap.last)
    return True


async def _extend(connection: AsyncConnection, segment: Segment, posts: Sequence[IndexedPost], last: int) -> Segment:
    """Add posts to a segment, which then ends at `last`, and return it."""
    numbers = [*segment.posts, *(post.number for post in posts)]
    values = {"last": last, "posts": pack(f"<{len(numbers)}q", *numbers)}
    if segment.is_new:
        await connection.execute(insert(SEGMENTS).values(first=segment.first, **values))
    else:
        await connection.execute(update(SEGMENTS).where(SEGMENTS.c.first == segment.first).values(**values))
    added = [(place, post.codes) for place, post in enumerate(posts, len(segment.posts))]
    await _append(connection, segment.first, added)
    return Segment(segment.first, last, numbers)


async def _append(connection: AsyncConnection, segment: int, added: Sequence[Placed]) -> None:
    """Append places to the rows of a segment's codes. The places ascend, and are higher than those in the rows."""
    new = _by_code(added)
    for codes in chunks(sorted(new), statements.MAX_LIST_LENGTH):
        held = await _held(connection, segment, codes)
        rows = [(code, segment, held.get(code, b"") + pack(f"<{len(new[code])}H", *new[code])) for code in codes]
        await _replace(connection, segment, held, rows)


async def _remove(connection: AsyncConnection, segment: int, removed: Sequence[Placed]) -> None:
    """Remove places from the rows of a segment's codes."""
    gone = {code: frozenset(places) for code, places in _by_code(removed).items()}
    for codes in chunks(sorted(gone), statements.MAX_LIST_LENGTH):
        held = await _held(connection, segment, codes)
        kept = {code: [place for place in places_in(row) if place not in gone[code]] for code, row in held.items()}
        rows = [(code, segment, pack(f"<{len(places)}H", *places)) for code, places in kept.items() if places]
        await _replace(connection, segment, held, rows)


async def _held(connection: AsyncConnection, segment: int, codes: Sequence[int]) -> dict[int, bytes]:
    query = select(TERMS.c.code, TERMS.c.places).where(TERMS.c.segment == segment, TERMS.c.code.in_(codes))
    return {row.code: row.places for row in await connection.execute(query)}


async def _replace(
    connection: AsyncConnection, segment: int, held: Collection[int], rows: Sequence[tuple[int, int, bytes]]
) -> None:
    if held:
        await connection.execute(delete(TERMS).where(TERMS.c.segment == segment, TERMS.c.code.in_(list(held))))
    await add_rows(connection, TERMS, ("code", "segment", "places"), rows)


def _by_code(posts: Sequence[Placed]) -> dict[int, list[int]]:
    """Return, for each code, the places of the posts that have the code."""
    places: defaultdict[int, list[int]] = defaultdict(list)
    for place, codes in posts:
        for code in codes:
            places[code].append(place)
    return places


def from_segment(number: int) -> Select[Any]:
    """Return the statement for the segment that covers a number or, if that is in a gap, for the next older segment."""
    return select(SEGMENTS).where(SEGMENTS.c.first <= number).order_by(SEGMENTS.c.first.desc()).limit(1)


async def _segment(connection: AsyncConnection, query: Select[Any]) -> Segment | None:
    row = (await connection.execute(query)).first()
    return None if row is None else Segment(row.first, row.last, numbers_in(row.posts))


def new_segment(first: int) -> Segment:
    """Return a new segment without posts, which has not been stored yet."""
    return Segment(first, first - 1, [])


def numbers_in(posts: bytes) -> list[int]:
    """Decode the numbers of a segment's posts."""
    return list(unpack(f"<{len(posts) // 8}q", posts))


def places_in(row: bytes) -> tuple[int, ...]:
    """Decode the places in the row of a code and a segment."""
    return unpack(f"<{len(row) // 2}H", row)
