"""Tests of finding posts by codes, in SQLite, PostgreSQL and MariaDB, against a plain scan."""

from collections.abc import Sequence
from random import Random, randrange

import pytest

from graph.archive import index, search
from graph.archive.archive import Archive
from graph.archive.codes import Clause, area_clause, author_clause, codes_of, keyword_clause
from graph.archive.rows import EventRow
from graph.feed.filters import Box
from graph.model import MAX_NUMBER
from graph.paging import Window
from graph.text.terms import keyword_of
from tests.graph.archive.events import STORE, append, deletion, held, post
from tests.graph.archive.test_index import WORDS, random_post

ALL = Window(50, True)


async def numbers(archive: Archive, clauses: Sequence[Clause], window: Window, segments: int = 3) -> list[int]:
    """Return the numbers of all candidates of a window, read in parts, in the direction of paging."""
    found: list[int] = []
    rest: Window | None = window
    while rest is not None:
        rows, following = await archive.candidates(clauses, rest, segments)
        assert len(rows) <= window.count
        assert following is None or (following.high < rest.high if window.forward else following.low > rest.low)
        found += [row.number for row in rows]
        rest = following
    assert found == sorted(set(found), reverse=window.forward)
    return found


def satisfying(rows: Sequence[EventRow], clauses: Sequence[Clause], window: Window) -> list[int]:
    """Return the numbers of the live posts of a window that satisfy all clauses, in the direction of paging."""
    found = [
        row.number
        for row in rows
        if row.kind == "PostPublished" and window.low < row.number < window.high
        if all(any(set(entry) <= codes_of(row) for entry in clause) for clause in clauses)
    ]
    return sorted(found, reverse=window.forward)


def random_clauses(random: Random) -> list[Clause]:
    """Return the clauses of a random filter."""
    words = [" ".join(random.choices(WORDS, k=random.choice([1, 1, 2, 3]))) for _ in range(random.randrange(1, 4))]
    box = Box(random.uniform(-90, 0), random.uniform(-180, 180), random.uniform(0, 90), random.uniform(-180, 180))
    clauses = [
        keyword_clause(map(keyword_of, words)),
        author_clause(random.sample(range(4), random.randrange(1, 3))),
        area_clause(box),
    ]
    return random.sample(clauses, random.choice([1, 1, 2, 3]))


def random_window(random: Random, last: int) -> Window:
    """Return a random window. It is short if pages are, because the test reads all its pages."""
    low, high = (
        random.choice([0, random.randrange(last)]),
        random.choice([MAX_NUMBER + 1, random.randrange(last + 9)]),
    )
    count = random.choice([1, 2, 5, 50])
    if count < 5:
        low = max(low, min(high, last + 9) - 20)
    return Window(count, random.random() < 0.5, min(low, high), max(low, high))


async def fill(archive: Archive, random: Random) -> int:
    """Append batches of posts, deletions and posts without index. Return the last number."""
    low = 0
    for _ in range(40):
        up_to = low + random.randrange(1, 30)
        some = sorted(random.sample(range(low + 1, up_to + 1), random.randrange(up_to - low + 1)))
        deleted = [n for n in some if random.random() < 0.2]
        rows = [deletion(n, random.randrange(1, n)) if n in deleted and n > 1 else random_post(random, n) for n in some]
        await append(archive)
        await archive.append(rows, [], store=STORE, watermark=low, up_to=up_to, indexes=random.random() < 0.8)
        low = up_to
    return low


async def test_candidates_are_the_posts_with_the_codes(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, long_profile: bool
) -> None:
    """Every window finds the posts with the codes, in both directions, with gaps in the index and after they close."""
    monkeypatch.setattr(index, "SEGMENT_POSTS", 10)
    monkeypatch.setattr(search, "SEGMENTS_AT_ONCE", 2)
    random = Random(randrange(1000))  # noqa: S311 - reproducible
    last = await fill(archive, random)
    rows = await held(archive)
    searches = 200 if long_profile else 8

    for _ in range(searches):
        clauses, window = random_clauses(random), random_window(random, last)
        found = await numbers(archive, clauses, window, random.choice([2, 3, 20]))
        assert set(satisfying(rows, clauses, window)) <= set(found)

    await archive.note_unindexed(STORE)
    while (some := await archive.unindexed(7)) is not None:
        assert await archive.close_gap(*some, 7, STORE)

    for _ in range(searches):
        clauses, window = random_clauses(random), random_window(random, last)
        found = await numbers(archive, clauses, window, random.choice([2, 3, 20]))
        assert found == satisfying(rows, clauses, window)


async def test_a_rare_word_is_found_next_to_a_frequent_one(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """One read finds the post, however many segments have only the frequent word."""
    monkeypatch.setattr(index, "SEGMENT_POSTS", 5)
    await append(archive, *(post(n, 1, "common rare" if n == 3 else "common") for n in range(1, 200)))

    [keyword] = keyword_clause([keyword_of("common rare")])
    for window in (ALL, Window(50, False, 0, 200)):
        found = await archive.candidates([[keyword]], window, 3)
        assert ([row.number for row in found.rows], found.remaining) == ([3], None)


async def test_a_read_is_bounded(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """For two frequent words that never occur together, a read ends after a limited number of segments."""
    monkeypatch.setattr(index, "SEGMENT_POSTS", 5)
    await append(archive, *(post(n, 1, "even" if n % 2 else "odd") for n in range(1, 200)))

    found = await archive.candidates([keyword_clause([keyword_of("even odd")])], ALL, 4)

    assert found.rows == []
    assert found.remaining is not None
    assert found.remaining.high == 181


async def test_an_unused_archive_has_no_candidates(archive: Archive) -> None:
    assert await archive.candidates([author_clause([1])], ALL, 4) == ([], None)
    assert await archive.unindexed(10) is None


async def test_a_gap_is_closed_from_its_end(archive: Archive) -> None:
    """Posts that are deleted meanwhile stay out of the index. If other posts arrive meanwhile, nothing changes."""
    await append(archive)
    await archive.append([post(n) for n in range(1, 31)], [], store=STORE, watermark=0, up_to=40, indexes=False)
    assert await archive.unindexed(10) is None
    await archive.note_unindexed(STORE)

    found = await archive.unindexed(10)
    assert found is not None
    assert found[0] == (1, 40)
    assert sorted(row.number for row in found[1]) == list(range(21, 31))
    await append(archive, deletion(41, 25))
    await archive.insert([post(31)], store=STORE)
    assert not await archive.close_gap(*found, 10, STORE)

    again = await archive.unindexed(10)
    assert again is not None
    await append(archive, deletion(42, 26))
    assert await archive.close_gap(*again, 10, STORE)

    assert await archive.unindexed(0) == ((1, 20), [])
    assert await numbers(archive, [author_clause([1])], Window(50, True, 20)) == [31, 30, 29, 28, 27, 24, 23, 22, 21]
