"""Tests of reading posts from the archive in SQLite, PostgreSQL and MariaDB, compared with a model."""

import struct
from collections.abc import Awaitable, Callable
from functools import cache
from random import Random
from typing import Any

import pytest

from graph.archive.archive import Archive
from graph.archive.rows import EventRow, FoundPosts
from graph.model import MAX_NUMBER, Location, Post
from graph.paging import Window
from tests.graph.archive.conftest import NewArchive
from tests.graph.archive.events import append, deletion, followed, post, row_of, statements_of
from tests.support.databases import DATABASES, PATIENCE, in_thread

TEXTS = (
    "plain",
    "Plain",
    "pláin",
    "pla\u0301in",
    "plain ",
    "ß",
    "ss",
    "你好，世界",
    "𠮷野家 𝔘 𓀀",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "tab\tline\nreturn\r\n\u2028\u2029",
    "nul \0, and 100%s %(name)s :name ? $1 {x}",
    "'; DROP TABLE events; -- \" ` \\ \\' \\0 \\Z",
    "\ufeff\ufffd\uffff\U0010ffff",
    "😀" * 1000,
    " ",
)


def bits(post: Post) -> tuple[bytes, str, str | None]:
    """Return a post's text, platform and location, the location as bytes."""
    at = post.location or Location(9e9, 9e9)
    return struct.pack(">dd", at.latitude, at.longitude), post.text, post.platform


async def test_a_post_is_read_exactly_as_it_was_written(archive: Archive) -> None:
    """Texts keep case, accents, Unicode form and trailing spaces. Numbers keep every bit."""
    random = Random(7)  # noqa: S311 - a sample, no secret
    places = [Location(*struct.unpack(">dd", random.randbytes(16))) for _ in range(200)]
    places = [at for at in places if abs(at.latitude) < 1e300 and abs(at.longitude) < 1e300]
    places += [Location(0.0, -0.0), Location(5e-324, -90.0), Location(0.1 + 0.2, 180.0), Location(1 / 3, -1e-7)]
    posts = [Post(n + 1, 1, "here", None, at) for n, at in enumerate(places)]
    posts += [Post(MAX_NUMBER - n, MAX_NUMBER, text, text[:30]) for n, text in enumerate(TEXTS)]
    await append(archive, *map(row_of, posts))

    found = await archive.get_many([post.id for post in posts])

    assert found == posts
    assert [bits(post) for post in found if post] == [bits(post) for post in posts]


async def test_posts_are_returned_in_the_requested_order(archive: Archive) -> None:
    """A repeated id is returned twice, and a missing row is None, for any number of ids."""
    posts = [Post(number, 1, "text") for number in range(10, 5010)]
    await append(archive, *map(row_of, posts), indexes=False)

    assert await archive.get_many([12, 9, 11, 12]) == [posts[2], None, posts[1], posts[2]]
    assert await archive.get_many(range(5010, 9, -1)) == [None, *posts[::-1]]
    assert await archive.get_many([]) == []


async def test_only_live_posts_are_posts(archive: Archive) -> None:
    """Deleted posts, posts without content, and other events are in no list of posts."""
    void = EventRow(3, "PostPublished", 1, None, None)
    await append(archive, post(1), post(2), void, deletion(4, 2), followed(5), post(6))
    ids, every = [1, 2, 3, 4, 5, 6], Window(9, True)
    live = [Post(6, 1, "text"), Post(1, 1, "text")]

    assert await archive.get_many(ids) == [live[1], None, None, None, None, live[0]]
    assert await archive.merge([1, 2], every) == live
    assert await archive.slices([(1, every)]) == [live]
    assert await archive.post_rows([(1, every)]) == [[post(6), post(1)]]
    assert await archive.post_ids(1, 0, 6) == {1, 6}
    assert await archive.post_counts([(1, 6), (2, 6)]) == ([2, 0], 6)
    assert await archive.look_up(ids) == FoundPosts({1: live[1], 6: live[0]}, 6)


async def test_a_body_may_have_fields_of_another_version(archive: Archive) -> None:
    """Unknown fields are ignored, and a location requires both of its fields."""
    await append(archive, post(1, text="x", reply_to=None, unknown={"a": 1}, latitude=1.5))

    assert await archive.get_many([1]) == [Post(1, 1, "x")]


async def test_a_reply_keeps_what_it_refers_to(archive: Archive) -> None:
    await append(archive, post(9, reply_to=7, root=3, ancestors=[3, 5], root_author=2, listed=False, mentions=[4]))

    [reply] = await archive.get_many([9])

    assert reply == Post(9, 1, "text", reply_to=7, root=3, mentions=(4,), ancestors=(3, 5), root_author=2, listed=False)


async def test_a_look_up_returns_the_watermark(archive: Archive) -> None:
    assert await archive.look_up([]) == FoundPosts({}, 0)
    await append(archive, post(1), up_to=9)
    assert await archive.look_up([1, 2, 10]) == FoundPosts({1: Post(1, 1, "text")}, 9)


async def test_counts_and_ids_belong_to_one_author(archive: Archive) -> None:
    """The upper end is included, the lower is not."""
    await append(archive, *(post(number, 1 + number % 3) for number in range(1, 1000)))

    assert await archive.post_ids(1, 3, 9) == {6, 9}
    assert await archive.post_ids(1, 9, 9) == set()
    reads = [(1, 8), (1, 9), (3, 0), (4, 999), (2, MAX_NUMBER)]
    assert await archive.post_counts(reads) == ([2, 3, 0, 0, 333], 999)
    many = [(1, number) for number in range(300)]
    assert await archive.post_counts(many) == ([number // 3 for number in range(300)], 999)
    assert await archive.post_counts([]) == ([], 999)


def window(random: Random, top: int) -> Window:
    """Return a random window: forward or backward, bounded or not, empty or not."""
    low = random.choice([0, random.randrange(top)])
    high = random.choice([MAX_NUMBER + 1, random.randrange(1, top + 2)])
    return Window(random.choice([1, 2, 11, 101]), random.random() < 0.5, low, high)


def expected(posts: list[Post], authors: set[int], window: Window) -> list[Post]:
    """Return a window of a list of posts."""
    within = [post for post in posts if post.author in authors and window.low < post.id < window.high]
    return sorted(within, key=lambda post: post.id, reverse=window.forward)[: window.count]


def some_posts() -> list[Post]:
    """Return posts of 199 authors, most of them by a few authors."""
    random = Random(11)  # noqa: S311 - reproducible
    authors = [min(random.randrange(1, 200), random.randrange(1, 200), random.randrange(1, 200)) for _ in range(2000)]
    return [Post(id * 3, author, f"{id} 好") for id, author in enumerate(authors, 1)]


@pytest.fixture(scope="module")
def filled_once(new_archive: NewArchive) -> Callable[[str], str]:
    """Return a function that returns the URL of an archive with the posts, and with follows between the posts."""

    async def fill(url: str) -> None:
        archive = Archive(url, timeout=PATIENCE)
        follows = [followed(post.id + 1, post.author, post.id % 199 + 1) for post in some_posts()]
        await append(archive, *sorted([*map(row_of, some_posts()), *follows]), indexes=False)
        await archive.close()

    @cache
    def filled(kind: str) -> str:
        url = new_archive(kind)
        in_thread(fill(url))
        return url

    return filled


@pytest.fixture(params=DATABASES)
async def filled(
    request: pytest.FixtureRequest, filled_once: Callable[[str], str], opened: Callable[..., Archive]
) -> Archive:
    """Open an archive with many posts, which several tests read."""
    archive = opened(filled_once(request.param), timeout=PATIENCE)
    await archive.migrate()
    return archive


@pytest.mark.parametrize("seed", range(2))
async def test_merging_equals_a_model(filled: Archive, seed: int) -> None:
    """The pages are equal in both directions, for any authors and any window."""
    random, posts = Random(seed), some_posts()  # noqa: S311 - reproducible
    for many in (0, 1, 2, 30, 300, 1000, 5000):
        for _ in range(2):
            authors = random.sample(range(1, 5001), many) + random.sample(range(1, 301), min(many, 300))
            requested = window(random, 6000)
            found = await filled.merge(authors, requested)
            assert found == expected(posts, set(authors), requested), (many, requested)


@pytest.mark.parametrize("seed", range(2))
async def test_slices_equal_a_model(filled: Archive, seed: int) -> None:
    """Each read has its own author, bounds, count and direction; an author can be read several times."""
    random, posts = Random(seed), some_posts()  # noqa: S311 - reproducible
    for many in (0, 1, 2, 33, 300):
        reads = [(random.randrange(1, 301), window(random, 6000)) for _ in range(many)]
        assert await filled.slices(reads) == [expected(posts, {author}, requested) for author, requested in reads]


async def test_five_thousand_authors_are_merged(archive: Archive) -> None:
    """The page has the newest posts, by different authors, although every author has posts."""
    posts = [Post(1 + n, 1 + n % 5000, "text") for n in range(5200)]
    await append(archive, *map(row_of, posts), indexes=False)

    for forward in (True, False):
        page = await archive.merge(range(1, 5001), Window(101, forward))
        assert page == (posts[:-102:-1] if forward else posts[:101])


async def test_reads_cost_one_statement(filled: Archive) -> None:
    """MariaDB needs one more statement above 256 authors, and PostgreSQL for ranges. The watermark takes one too."""
    page = Window(11, True)
    of_range = 2 if filled.database.kind == "postgresql" else 1
    costs: list[tuple[int, Callable[[], Awaitable[Any]]]] = [
        (1, lambda: filled.merge([1], page)),
        (1, lambda: filled.merge(range(1, 257), page)),
        (2 if filled.database.kind == "mysql" else 1, lambda: filled.merge(range(1, 5001), page)),
        (1, lambda: filled.slices([(author, page) for author in range(1, 257)])),
        (1, lambda: filled.get_many(range(1, 2001))),
        (1, lambda: filled.post_ids(1, 0, 100)),
        (2, lambda: filled.post_counts([(author, 100) for author in range(1, 257)])),
        (2, lambda: filled.look_up(range(1, 2001))),
        (1, lambda: filled.kinds_of(range(1, 2001))),
        (of_range, lambda: filled.range(0, 9000, 100)),
        (1, lambda: filled.by_actor(range(1, 901), ["PostPublished", "Followed"], 0, 100)),
        (1, lambda: filled.credentials(range(1, 2001))),
        (of_range, lambda: filled.user_ids(0, 100)),
        (1, filled.state),
    ]
    for cost, read in costs:
        with statements_of(filled) as sent:
            await read()
        assert len(sent) == cost, sent
