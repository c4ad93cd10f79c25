"""Tests of the archive in SQLite, PostgreSQL and MariaDB: rows, floors, and reads compared with a model."""

import asyncio
import struct
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, TypeVar

import pytest
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive.archive import Archive
from graph.archive.floors import Floors
from graph.model import MAX_NUMBER, Location, Post
from graph.paging import Window

T = TypeVar("T")

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
    "100%s %(name)s :name ? $1 {x}",
    "'; DROP TABLE fanline_posts; -- \" ` \\ \\' \\0 \\Z",
    "\ufeff\ufffd\uffff\U0010ffff",
    "😀" * 1000,
    " ",
)


@pytest.fixture
async def archive(archive_url: str) -> AsyncIterator[Archive]:
    """Open an empty archive."""
    archive = Archive(archive_url)
    yield archive
    await archive.close()


def written(author: int, *ids: int, text: str = "text") -> list[Post]:
    """Return posts of an author with these ids."""
    return [Post(id, author, text) for id in ids]


def bits(post: Post) -> tuple[bytes, str, str | None]:
    """Return a post's text, platform and location, the location as bytes."""
    at = post.location or Location(9e9, 9e9)
    return struct.pack(">dd", at.latitude, at.longitude), post.text, post.platform


@contextmanager
def statements_of(archive: Archive) -> Iterator[list[tuple[str, Any]]]:
    """Collect the statements that an archive sends, with their parameters, except those that begin a transaction."""
    sent: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, *rest: Any) -> None:
        if not statement.startswith(("BEGIN", "PRAGMA")):
            sent.append((statement, parameters))

    engine = archive.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", note)


async def test_a_post_is_read_exactly_as_it_was_written(archive: Archive) -> None:
    """Texts keep case, accents, Unicode form and trailing spaces. Numbers keep every bit."""
    random = Random(7)  # noqa: S311 - a sample, no secret
    places = [Location(*struct.unpack(">dd", random.randbytes(16))) for _ in range(200)]
    places = [at for at in places if abs(at.latitude) < 1e300 and abs(at.longitude) < 1e300]
    places += [Location(0.0, 0.0), Location(5e-324, -90.0), Location(0.1 + 0.2, 180.0), Location(1 / 3, -1e-7)]
    posts = [Post(MAX_NUMBER - n, MAX_NUMBER, text, text[:30]) for n, text in enumerate(TEXTS)]
    posts += [Post(n + 1, 1, "here", None, at) for n, at in enumerate(places)]
    assert await archive.add(1, posts, 0, MAX_NUMBER)

    found = await archive.get_many([post.id for post in posts])

    assert found == posts
    assert [bits(post) for post in found if post] == [bits(post) for post in posts]


async def test_posts_are_returned_in_the_requested_order(archive: Archive) -> None:
    """A repeated id is returned twice, and a missing row is None, for any number of ids."""
    posts = written(1, *range(10, 5010))
    await archive.add(1, posts, 0, 5009)

    assert await archive.get_many([12, 9, 11, 12]) == [posts[2], None, posts[1], posts[2]]
    assert await archive.get_many(range(5010, 9, -1)) == [None, *posts[::-1]]
    assert await archive.get_many([]) == []


async def test_adding_twice_adds_once(archive: Archive) -> None:
    """Existing rows stay unchanged, and missing rows are added."""
    await archive.add(1, written(1, 10, 11), 0, 11)

    assert await archive.add(1, written(1, 10, 11, 12, text="other"), 11, 12)

    assert await archive.get_many([10, 11, 12]) == [*written(1, 10, 11), *written(1, 12, text="other")]
    assert await archive.floors(1) == Floors(12, 0)


@pytest.mark.parametrize(("floor", "old"), [(0, 5), (10, 0), (10, 9), (10, 11)])
async def test_adding_from_another_floor_writes_nothing(archive: Archive, floor: int, old: int) -> None:
    """Floor and rows change together, by compare-and-set."""
    await archive.add(1, [], 0, floor)

    assert not await archive.add(1, written(1, 20), old, 20)

    assert await archive.get_many([20]) == [None]
    assert await archive.floors(1) == Floors(floor, 0)
    assert await archive.scan(0, 10) == [1]


async def test_one_of_several_concurrent_moves_wins(archive: Archive, archive_url: str) -> None:
    """The rows are those of the winner."""
    others = [archive, *(Archive(archive_url) for _ in range(3))]
    for old in range(3):
        won = await asyncio.gather(
            *(other.add(1, written(1, old + 1, text=str(who)), old, old + 1) for who, other in enumerate(others))
        )
        assert sum(won) == 1
        [post] = await archive.get_many([old + 1])
        assert post is not None
        assert post.text == str(won.index(True))
    for other in others[1:]:
        await other.close()


async def test_a_process_killed_in_a_transaction_leaves_nothing(archive: Archive, archive_url: str) -> None:
    """It leaves no rows, no floor and no lock."""
    script = """
        import asyncio, os, signal, sys
        from graph.archive.archive import Archive
        from graph.model import Post

        class Killed(Archive):
            async def _transaction(self, work):
                async def killed(connection):
                    assert await work(connection) is True
                    os.kill(os.getpid(), signal.SIGKILL)
                return await super()._transaction(killed)

        asyncio.run(Killed(sys.argv[1]).add(1, [Post(5, 1, "lost")], 0, 5))
    """
    await archive.migrate()
    command = [sys.executable, "-c", textwrap.dedent(script), archive_url]
    assert (await asyncio.to_thread(subprocess.run, command, check=False)).returncode == -9

    assert await archive.get_many([5]) == [None]
    assert await archive.floors(1) == Floors(0, 0)
    assert await archive.add(1, written(1, 5), 0, 5)


async def test_a_failed_transaction_is_rolled_back(archive: Archive) -> None:

    class Failing(Archive):
        async def _transaction(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
            async def failed(connection: AsyncConnection) -> T:
                await work(connection)
                raise ZeroDivisionError

            return await super()._transaction(failed)

    failing = Failing(archive.database.url.render_as_string(hide_password=False))
    with pytest.raises(ZeroDivisionError):
        await failing.add(1, written(1, 5), 0, 5)
    await failing.close()

    assert (await archive.get_many([5]), await archive.floors(1)) == ([None], Floors(0, 0))


def window(random: Random, top: int) -> Window:
    """Return a random window: forward or backward, bounded or not, empty or not."""
    low = random.choice([0, random.randrange(top)])
    high = random.choice([MAX_NUMBER + 1, random.randrange(1, top + 2)])
    return Window(random.choice([1, 2, 11, 101]), random.random() < 0.5, low, high)


def expected(posts: list[Post], authors: set[int], window: Window) -> list[Post]:
    """Return a window of a list of posts."""
    within = [post for post in posts if post.author in authors and window.low < post.id < window.high]
    return sorted(within, key=lambda post: post.id, reverse=window.forward)[: window.count]


@pytest.fixture
async def filled(archive: Archive) -> list[Post]:
    """Fill the archive with posts of 199 authors, most of them by a few authors."""
    random = Random(11)  # noqa: S311 - reproducible
    authors = [min(random.randrange(1, 200), random.randrange(1, 200), random.randrange(1, 200)) for _ in range(2000)]
    posts = [Post(id * 3, author, f"{id} 好") for id, author in enumerate(authors, 1)]
    await archive.add(1, posts, 0, 1)
    return posts


@pytest.mark.parametrize("seed", range(2))
async def test_merging_equals_a_model(archive: Archive, filled: list[Post], seed: int) -> None:
    """The pages are equal in both directions, for any authors and any window."""
    random = Random(seed)  # noqa: S311 - reproducible
    for many in (0, 1, 2, 30, 300, 1000, 5000):
        for _ in range(2):
            authors = random.sample(range(1, 5001), many) + random.sample(range(1, 301), min(many, 300))
            requested = window(random, 6000)
            assert await archive.merge(authors, requested) == expected(filled, set(authors), requested), (
                many,
                requested,
            )


@pytest.mark.parametrize("seed", range(2))
async def test_slices_equal_a_model(archive: Archive, filled: list[Post], seed: int) -> None:
    """Each read has its own author, bounds, count and direction; an author can be read several times."""
    random = Random(seed)  # noqa: S311 - reproducible
    for many in (0, 1, 2, 33, 300):
        reads = [(random.randrange(1, 301), window(random, 6000)) for _ in range(many)]
        assert await archive.slices(reads) == [expected(filled, {author}, requested) for author, requested in reads]


@pytest.mark.parametrize("forward", [True, False])
async def test_five_thousand_authors_are_merged(archive: Archive, forward: bool) -> None:
    """Every author has posts, and the newest posts are by different authors."""
    posts = [Post(1 + n, 1 + n % 5000, "text") for n in range(10_000)]
    await archive.add(1, posts, 0, 1)

    page = await archive.merge(range(1, 5001), Window(101, forward))

    assert page == (posts[:-102:-1] if forward else posts[:101])


async def test_reads_cost_one_statement(archive: Archive, filled: list[Post]) -> None:
    """MariaDB needs a second statement for more than 256 authors."""
    page = Window(11, True)
    for cost, read in (
        (1, lambda: archive.merge([1], page)),
        (1, lambda: archive.merge(range(1, 257), page)),
        (2 if archive.database.kind == "mysql" else 1, lambda: archive.merge(range(1, 5001), page)),
        (1, lambda: archive.slices([(author, page) for author in range(1, 257)])),
        (1, lambda: archive.get_many(range(1, 2001))),
        (1, lambda: archive.floors(1)),
        (1, lambda: archive.count(1, 100)),
        (1, lambda: archive.ids(1, 0, 100)),
        (1, archive.identity),
        (1, lambda: archive.scan(0, 10)),
    ):
        with statements_of(archive) as sent:
            await read()
        assert len(sent) == cost, sent


async def test_merging_never_scans_the_table(archive: Archive, filled: list[Post]) -> None:
    """The query plans use the index of authors, for few authors and for many."""
    explain = "EXPLAIN QUERY PLAN" if archive.database.kind == "sqlite" else "EXPLAIN"
    for authors in ([7], range(1, 101), range(1, 5001)):
        with statements_of(archive) as sent:
            await archive.merge(authors, Window(11, True))
        async with archive.database.engine.connect() as connection:
            for statement, parameters in sent:
                rows = await connection.exec_driver_sql(f"{explain} {statement}", parameters)
                plan = [" ".join(map(str, row)) for row in rows]
                assert any("fanline_posts_author" in step for step in plan), plan


async def test_floors_and_counts_belong_to_one_author(archive: Archive) -> None:
    """`freed` never falls, and does not depend on `moved`."""
    await archive.add(1, written(1, 10, 20, 30), 0, 30)
    await archive.add(2, written(2, 15), 0, 15)
    for upto in (10, 20, 15):
        await archive.raise_freed_floor(1, upto)
    await archive.raise_freed_floor(3, 7)

    assert [await archive.floors(author) for author in (1, 2, 3, 4)] == [
        Floors(30, 20),
        Floors(15, 0),
        Floors(0, 7),
        Floors(0, 0),
    ]
    assert await archive.ids(1, 10, 30) == {20, 30}
    assert [await archive.count(1, upto) for upto in (9, 10, 29, 99)] == [0, 1, 2, 3]


async def test_deleting_rows_ignores_missing_rows_and_keeps_the_floor(archive: Archive) -> None:
    await archive.add(1, written(1, *range(1, 5001)), 0, 5000)

    await archive.delete(range(2, 9000))
    await archive.delete([2, 9000])
    await archive.delete([])

    assert await archive.ids(1, 0, 9000) == {1}
    assert await archive.floors(1) == Floors(5000, 0)


async def test_authors_are_scanned_in_steps(archive: Archive) -> None:
    """Authors with rows and authors with floors are returned once each, in ascending order."""
    posts = [post._replace(author=post.id * 2) for post in written(1, *range(1, 8))]
    await archive.add(5, posts, 0, 1)
    await archive.raise_freed_floor(6, 1)

    found, step = [], await archive.scan(0, 3)
    while step:
        assert len(step) <= 3
        found += step
        step = await archive.scan(step[-1], 3)

    assert found == [2, 4, 5, 6, 8, 10, 12, 14]
