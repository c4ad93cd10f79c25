"""The search index of posts, written in transactions that the caller has begun, one of them at a time.

A *segment* covers a range of numbers and lists its posts. The place of a post is its position in this list. For each
code (`graph.archive.codes`) of these posts there is a row with the places of the posts that have it. A frequent term
takes two bytes per post, and a batch changes at most one row per code.

A *gap* is a range whose posts are not indexed: the archive held them before it had an index, or a version of Fanline
without the index archived them. So are the posts after the newest segment. Readers look through the posts of gaps one
by one, and the worker closes gaps (`graph.archiver.indexing`). So the index only makes searches fast. Nothing depends
on rows of it that should not be there either, because each post that is found is compared with the filter.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from struct import pack, unpack
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Select, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive import statements
from graph.archive.codes import codes_of
from graph.archive.inserts import add_rows
from graph.archive.pages import chunks, has_posts
from graph.archive.rows import EventRow
from graph.archive.tables import GAPS, SEGMENTS, TERMS

SEGMENT_POSTS = 4096
MAX_PLACES = 1 << 16
"""The most posts of a segment: posts that arrive late make it longer than SEGMENT_POSTS."""


Placed: TypeAlias = tuple[int, Iterable[int]]
"""The place of a post, and its codes."""


class Segment(NamedTuple):
    """A segment: the first and the last number that it covers, and the numbers of its posts in the order of places.

    A segment that is not stored yet ends before it begins.
    """

    first: int
    last: int
    posts: list[int]

    @property
    def is_new(self) -> bool:
        """Whether the segment is not stored yet."""
        return self.last < self.first


@dataclass(frozen=True, slots=True)
class IndexedPost:
    """The number of a post and its codes."""

    number: int
    codes: frozenset[int]


def indexed(row: EventRow) -> IndexedPost:
    """Return the post in a row with its codes. About 0.1 ms. Raises ValueError if its body is damaged."""
    return IndexedPost(row.number, frozenset(codes_of(row)))


async def add(connection: AsyncConnection, posts: Iterable[IndexedPost], watermark: int) -> None:
    """Index posts of the archive, in the transaction that inserts them.

    `watermark` is the archive watermark before. Five statements, and three more per 900 codes.
    """
    ordered = sorted(posts, key=lambda post: post.number)
    if not ordered:
        return
    newest = await _segment(connection, select(SEGMENTS).order_by(SEGMENTS.c.first.desc()).limit(1))
    known = max(watermark, newest.last if newest else 0)
    await _add_late(connection, [post for post in ordered if post.number <= known])
    fresh = [post for post in ordered if post.number > known]
    while fresh:
        segment = await _open_segment(connection, newest, watermark)
        room = SEGMENT_POSTS - len(segment.posts)
        part, fresh = fresh[:room], fresh[room:]
        newest = await _extend(connection, segment, part, part[-1].number)


async def _open_segment(connection: AsyncConnection, newest: Segment | None, watermark: int) -> Segment:
    """Return the segment to which posts above the watermark are added: the newest one, or a new one behind it.

    If the archive holds posts between them, they become a gap.
    """
    last = newest.last if newest else 0
    if last < watermark and await has_posts(connection, last, watermark):
        await connection.execute(insert(GAPS).values(first=last + 1, last=watermark))
        return new_segment(watermark + 1)
    return newest if newest and len(newest.posts) < SEGMENT_POSTS else new_segment(last + 1)


async def _add_late(connection: AsyncConnection, posts: Sequence[IndexedPost]) -> None:
    """Add posts to the segments that cover their numbers. In a gap there is nothing to do.

    A post of a segment that has no more places becomes a gap.
    """
    for segment, some in await _by_segment(connection, posts):
        room = max(0, MAX_PLACES - len(segment.posts))
        for post in some[room:]:
            await connection.execute(delete(GAPS).where(GAPS.c.first == post.number))
            await connection.execute(insert(GAPS).values(first=post.number, last=post.number))
        await _extend(connection, segment, some[:room], segment.last)


async def add_segment(connection: AsyncConnection, first: int, last: int, posts: Sequence[IndexedPost]) -> None:
    """Add a segment that covers a part of a gap. The gap stays."""
    await _extend(connection, new_segment(first), posts, last)


async def remove(connection: AsyncConnection, posts: Iterable[IndexedPost]) -> None:
    """Remove posts from the index. One statement per segment, and three more per 900 codes."""
    for segment, some in await _by_segment(connection, posts):
        places = {number: place for place, number in enumerate(segment.posts)}
        gone = [(places[post.number], post.codes) for post in some if post.number in places]
        await _change(connection, segment.first, [], gone)


async def _by_segment(
    connection: AsyncConnection, posts: Iterable[IndexedPost]
) -> list[tuple[Segment, list[IndexedPost]]]:
    """Return the segments that cover posts, with the posts. Posts in gaps are left out."""
    found: list[tuple[Segment, list[IndexedPost]]] = []
    first: int | None = None  # of the segment or gap that was read last
    for post in sorted(posts, key=lambda post: post.number, reverse=True):
        if first is None or post.number < first:
            segment = await _segment(connection, from_segment(post.number))
            first = segment.first if segment else 0
            if segment is not None:
                found.append((segment, []))
        if found and found[-1][0].first <= post.number <= found[-1][0].last:
            found[-1][1].append(post)
    return [each for each in found if each[1]]


async def _extend(connection: AsyncConnection, segment: Segment, posts: Sequence[IndexedPost], last: int) -> Segment:
    """Add posts to a segment, which then ends at `last`, and return it."""
    numbers = [*segment.posts, *(post.number for post in posts)]
    values = {"last": last, "posts": pack(f"<{len(numbers)}q", *numbers)}
    if segment.is_new:
        await connection.execute(insert(SEGMENTS).values(first=segment.first, **values))
    else:
        await connection.execute(update(SEGMENTS).where(SEGMENTS.c.first == segment.first).values(**values))
    added = [(place, post.codes) for place, post in enumerate(posts, len(segment.posts))]
    await _change(connection, segment.first, added, [])
    return Segment(segment.first, last, numbers)


async def _change(
    connection: AsyncConnection, segment: int, added: Sequence[Placed], removed: Sequence[Placed]
) -> None:
    """Add and remove places in the rows of a segment's codes."""
    new, gone = _by_code(added), _by_code(removed)
    for codes in chunks(sorted({*new, *gone}), statements.MAX_LIST_LENGTH):
        in_segment = (TERMS.c.segment == segment) & TERMS.c.code.in_(codes)
        held = {code: places_in(row) for code, row in await connection.execute(_places().where(in_segment))}
        if held:
            await connection.execute(delete(TERMS).where(in_segment))
        places = {code: {*held.get(code, ()), *new.get(code, ())}.difference(gone.get(code, ())) for code in codes}
        rows = [(code, segment, pack(f"<{len(of)}H", *sorted(of))) for code, of in places.items() if of]
        await add_rows(connection, TERMS, ("code", "segment", "places"), rows)


def _by_code(posts: Sequence[Placed]) -> dict[int, list[int]]:
    """Return the places of posts by code."""
    places: dict[int, list[int]] = {}
    for place, codes in posts:
        for code in codes:
            places.setdefault(code, []).append(place)
    return places


def _places() -> Select[Any]:
    return select(TERMS.c.code, TERMS.c.places)


def from_segment(number: int) -> Select[Any]:
    """Return the statement for the segment that covers a number or, if it is in a gap, for the next older one."""
    return select(SEGMENTS).where(SEGMENTS.c.first <= number).order_by(SEGMENTS.c.first.desc()).limit(1)


async def _segment(connection: AsyncConnection, query: Select[Any]) -> Segment | None:
    row = (await connection.execute(query)).first()
    return None if row is None else Segment(row.first, row.last, numbers_in(row.posts))


def new_segment(first: int) -> Segment:
    """Return a segment without posts, which is not stored yet."""
    return Segment(first, first - 1, [])


def numbers_in(posts: bytes) -> list[int]:
    """Return the numbers of a segment's posts."""
    return list(unpack(f"<{len(posts) // 8}q", posts))


def places_in(row: bytes) -> tuple[int, ...]:
    """Return the places in a row of a code."""
    return unpack(f"<{len(row) // 2}H", row)
