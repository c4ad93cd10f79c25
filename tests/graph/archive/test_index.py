"""Tests of the search index, in SQLite, PostgreSQL and MariaDB."""

from random import Random

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive import index
from graph.archive.archive import Archive
from graph.archive.codes import LEVELS, area_clause, author_clause, code_of, codes_of, keyword_clause
from graph.archive.index import numbers_in, places_in
from graph.archive.rows import EventRow
from graph.archive.tables import GAPS, SEGMENTS, TERMS
from graph.feed.filters import Box
from graph.text.terms import keyword_of
from tests.graph.archive.events import STORE, append, deletion, held, post

WORDS = ["red", "green", "blue", "#tag", "北京", "大学", "猫", "コーヒー", "한국어"]


async def index_of(archive: Archive) -> dict[int, set[int]]:
    """Return the numbers of the indexed posts by code."""

    async def work(connection: AsyncConnection) -> dict[int, set[int]]:
        segments = {row.first: numbers_in(row.posts) for row in await connection.execute(select(SEGMENTS))}
        found: dict[int, set[int]] = {}
        for code, segment, places in await connection.execute(select(TERMS)):
            found.setdefault(code, set()).update(segments[segment][place] for place in places_in(places))
        return found

    return await archive.database.transaction(work)


async def ranges_of(archive: Archive) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the ranges of the segments and of the gaps."""

    async def work(connection: AsyncConnection) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        segments = await connection.execute(select(SEGMENTS.c.first, SEGMENTS.c.last).order_by(SEGMENTS.c.first))
        gaps = await connection.execute(select(GAPS.c.first, GAPS.c.last).order_by(GAPS.c.first))
        return [tuple(row) for row in segments], [tuple(row) for row in gaps]

    return await archive.database.transaction(work)


def expected(rows: list[EventRow]) -> dict[int, set[int]]:
    """Return the index that these rows must have."""
    found: dict[int, set[int]] = {}
    for row in rows:
        if row.kind == "PostPublished":
            for code in codes_of(row):
                found.setdefault(code, set()).add(row.number)
    return found


def random_post(random: Random, number: int) -> EventRow:
    text = " ".join(random.choices(WORDS, k=random.randrange(1, 5)))
    place = {"latitude": random.uniform(-90, 90), "longitude": random.uniform(-180, 180)}
    return post(number, random.randrange(3), text, **(place if random.random() < 0.5 else {}))


def test_a_post_has_the_codes_of_its_words_author_and_cells() -> None:
    codes = codes_of(post(5, 7, "Red 北京大 #Tag", latitude=1.0, longitude=2.0))

    words = {"red", "tag", "#tag", "北", "京", "大", "北京", "京大", "author:7"}
    assert {code_of(word) for word in words} < codes
    assert len(codes) == len(words) + len(LEVELS)
    assert all(-(1 << 31) <= code < 1 << 31 for code in codes)
    assert all(set(entry) < codes for entry in keyword_clause([keyword_of("red 北京大"), keyword_of("#tag 京")]))
    assert author_clause([7]) == [[code_of("author:7")]]


def test_codes_never_change() -> None:
    """Codes are stored, so they must never change."""
    assert [code_of(term) for term in ("red", "北京", "author:7", "cell:4:1:2")] == [
        2053201807,
        1282113169,
        -672738426,
        587047581,
    ]


@pytest.mark.parametrize("seed", range(300))
def test_a_location_has_a_code_of_each_area_that_contains_it(seed: int) -> None:
    """Points on the edges of areas, at the poles and on both sides of the antimeridian have all codes."""
    random = Random(seed)  # noqa: S311 - reproducible
    edges = sorted(random.choice([-90, 90, random.uniform(-90, 90)]) for _ in range(2))
    sides = [random.choice([-180, 180, random.uniform(-180, 180)]) for _ in range(2)]
    box = Box(edges[0], sides[0], edges[1], sides[1])
    areas = {code for [code] in area_clause(box)}

    assert len(areas) <= 16
    for _ in range(40):
        latitude = random.choice([*edges, random.uniform(-90, 90)])
        longitude = random.choice([*sides, -180, 180, random.uniform(-180, 180)])
        if box.contains(latitude, longitude):
            assert areas & codes_of(post(1, latitude=latitude, longitude=longitude))


def test_a_long_keyword_is_looked_up_by_eight_terms() -> None:
    """The terms are the longest words and pairs of characters from all parts of the phrases."""
    [codes] = keyword_clause([keyword_of("北京大学生活动中心欢迎你们 a bb ccc")])

    assert len(codes) == 8
    assert {code_of("a"), code_of("bb"), code_of("ccc"), code_of("北京")} < set(codes)


async def test_appended_posts_are_indexed(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch is indexed in consecutive segments."""
    monkeypatch.setattr(index, "SEGMENT_POSTS", 7)
    random = Random(1)  # noqa: S311 - reproducible
    for low in (0, 20, 40, 100, 120):
        await append(archive, *(random_post(random, number) for number in range(low + 1, low + 6)), up_to=low + 20)
    await append(archive, up_to=1000)
    await append(archive, *(random_post(random, number) for number in range(2001, 2021)))

    assert await index_of(archive) == expected(await held(archive))
    segments, gaps = await ranges_of(archive)
    assert gaps == []
    assert [first for first, _ in segments[1:]] == [last + 1 for _, last in segments[:-1]]
    assert segments[-1][1] == 2020


async def test_deleted_posts_leave_the_index(archive: Archive) -> None:
    """Deleted posts are removed with their codes, even if they arrive with or after their deletion."""
    random = Random(2)  # noqa: S311 - reproducible
    await append(archive, *(random_post(random, number) for number in range(1, 100)))
    await append(archive, *(deletion(number + 100, number) for number in range(1, 60)), deletion(190, 195))
    await append(archive, post(200), deletion(201, 200), post(202), up_to=300)
    await append(archive, post(195), post(196), low=150, up_to=200)

    assert await index_of(archive) == expected(await held(archive))


async def test_posts_that_arrive_late_are_indexed(archive: Archive) -> None:
    """Late posts are indexed in the segment that covers their number."""
    random = Random(3)  # noqa: S311 - reproducible
    await append(archive, *(random_post(random, number) for number in range(10, 100, 10)))
    await archive.insert([random_post(random, number) for number in range(5, 95, 10)], store=STORE)
    await append(archive, *(random_post(random, number) for number in (3, 44)), low=1, up_to=50)

    assert await index_of(archive) == expected(await held(archive))
    assert await ranges_of(archive) == ([(1, 90)], [])


async def test_a_segment_without_places_makes_gaps(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "MAX_PLACES", 3)
    await append(archive, post(10), post(20))
    await archive.insert([post(5), post(15), post(16)], store=STORE)

    assert (await ranges_of(archive))[1] == [(5, 5), (15, 15)]
    assert await index_of(archive) == expected([post(number) for number in (10, 16, 20)])


async def test_posts_without_an_index_become_a_gap(archive: Archive) -> None:
    """The segments begin after the gap. Posts in the gap that are deleted or arrive late are not indexed."""
    await append(archive, post(1))
    await archive.append([post(5), post(6)], [], store=STORE, watermark=1, up_to=9, indexes=False)
    await append(archive, post(12))
    await append(archive, deletion(13, 5))
    await archive.insert([post(7)], store=STORE)

    assert await ranges_of(archive) == ([(1, 1), (10, 12)], [(2, 9)])
    assert await index_of(archive) == expected([post(1), post(12)])


async def test_events_without_posts_make_no_gap(archive: Archive) -> None:
    await append(archive, up_to=5)
    await append(archive, post(6), deletion(7, 6), up_to=8)
    await archive.append([deletion(9, 3)], [], store=STORE, watermark=8, up_to=10, indexes=False)
    await append(archive, post(12))

    assert await ranges_of(archive) == ([(1, 12)], [])
