"""Tests of the plans of the archive's statements in SQLite, PostgreSQL and MariaDB.

A table without statistics is the worst case: the planner of PostgreSQL then knows nothing about the columns.
"""

import re
from collections.abc import Awaitable, Callable
from functools import cache, partial
from typing import Any

import pytest
from sqlalchemy import text

from graph.archive.archive import Archive
from graph.archive.rows import FOLLOW, POST, SUSPENSION, UNFOLLOW, UNSUSPENSION, Credential, EventRow
from graph.paging import Window
from graph.post_lists import POST_LISTS, REPOSTS
from tests.graph.archive.conftest import NewArchive
from tests.graph.archive.events import STORE, append, deletion, followed, post, statements_of, unfollowed
from tests.support.databases import DATABASES, PATIENCE, in_thread

FORWARD, BACKWARD = Window(11, True), Window(11, False, 50, 3000)
BY_ACTOR, BY_SUBJECT = "events_by_actor: actor kind number", "events_by_subject: kind number subject"
BY_LISTED = "events_by_listed_by: listed_by number"
BY_KIND, BY_PAIR, BY_NUMBER = "events_by_kind: kind number", "events_by_pair: actor number subject", "primary: number"

# MariaDB shows the length of the searched part of an index.
LENGTHS = {("events_by_actor", 146), ("events_by_subject", 147), ("events_by_pair", 25), ("PRIMARY", 8)}
LENGTHS |= {("events_by_kind", 138), ("events_by_listed_by", 17)}


def used(kind: str, plan: list[str]) -> set[str]:
    """Return the indexes of the table of events that a plan searches, each with the columns of the conditions."""
    return {"sqlite": used_by_sqlite, "postgresql": used_by_postgresql, "mysql": used_by_mariadb}[kind](plan)


def used_by_sqlite(plan: list[str]) -> set[str]:
    steps = [step for step in plan if re.search(r"(SCAN|SEARCH) events\b", step)]
    found = [re.search(r"USING (?:COVERING )?(?:INDEX|INTEGER) (PRIMARY KEY|\w+) \((.*)\)", step) for step in steps]
    return {described(each[1], each[2]) if each else step for each, step in zip(found, steps, strict=True)}


def used_by_postgresql(plan: list[str]) -> set[str]:
    every = "\n".join(plan)
    # a bitmap has no order, so LIMIT reads all of it
    slow = r"Seq Scan on events|Bitmap|Filter: .*(number|actor|listed_by|subject)\b"
    found = {step for step in plan if re.search(slow, step)}
    pattern = r"Index (?:Only )?Scan (?:Backward )?using (\w+) .*\n *Index Cond: (.*)"
    return found | {described(*each) for each in re.findall(pattern, every)}


def used_by_mariadb(plan: list[str]) -> set[str]:
    steps = [step.split("|") for step in plan]
    columns = dict(each.split(": ") for each in (BY_ACTOR, BY_LISTED, BY_SUBJECT, BY_KIND, BY_PAIR)) | {
        "PRIMARY": "number"
    }
    return {
        described(key, columns[key])
        if (key, int(length)) in LENGTHS and how in ("range", "eq_ref", "const")
        else "|".join(step)
        for step in steps
        for table, how, key, length in [(step[2], step[3], step[5], step[6])]
        if table == "events"
    }


def described(index: str, conditions: str) -> str:
    """Return the name of an index and the columns that its conditions name."""
    columns = {"rowid": "number"} | {name: name for name in ("actor", "kind", "listed_by", "number", "subject")}
    named = {
        columns[word]
        for word in re.findall(r"\w+", re.sub(r"owned\.\w+|asked\.\w+|sort\.\w+", "", conditions))
        if word in columns
    }
    return f"{'primary' if 'pkey' in index or 'PRIMARY' in index else index}: {' '.join(sorted(named))}"


async def plans_of(archive: Archive, call: Callable[[], Awaitable[Any]]) -> set[str]:
    """Return how a call's statements use indexes, except INSERT and statements that do not read events."""
    return set().union(*[used(archive.database.kind, plan) for plan in await steps_of(archive, call)])


async def steps_of(archive: Archive, call: Callable[[], Awaitable[Any]]) -> list[list[str]]:
    """Return the plans of the statements of a call that read events or credentials."""
    explain = "EXPLAIN QUERY PLAN" if archive.database.kind == "sqlite" else "EXPLAIN"
    with statements_of(archive) as sent:
        await call()
    plans: list[list[str]] = []
    async with archive.database.engine.connect() as connection:
        for statement, parameters in sent:
            if "set_config" in statement:
                await connection.exec_driver_sql(statement, parameters)
            if re.search(r"(FROM|UPDATE) (events|credentials|public_posts)\b", statement):
                first = parameters[0] if isinstance(parameters, list) else parameters
                rows = await connection.exec_driver_sql(f"{explain} {statement}", first)
                plans.append(["|".join(map(str, row)) for row in rows])
    return plans


def slow_steps(plans: list[list[str]]) -> list[str]:
    """Return the steps that sort, read a whole table, or read the pages of an index without order."""
    slow = "sort|TEMP B-TREE|Seq Scan|Bitmap|SCAN (events|public_posts)|\\|ALL\\|"
    return [
        step
        for plan in plans
        for step in plan
        if re.search(slow, step, re.IGNORECASE) and not re.search("derived|SCAN scan|unnest", step)
    ]


def rows() -> list[EventRow]:
    """Return events: user 1 has most of the posts and follows, and user 2 has most of the followers."""
    return [
        *(post(number, 1 if number % 3 else number % 50) for number in range(1, 3001)),
        *(followed(number, 1, number % 500) for number in range(3001, 4001)),
        *(followed(number, number % 500, 2) for number in range(4001, 5001)),
    ]


async def fill(url: str, *, statistics: bool) -> None:
    """Fill an archive with events and credentials."""
    archive = Archive(url, timeout=PATIENCE)
    users = [Credential(number, f"user{number}", None, number) for number in range(1, 5001)]
    await append(archive, *rows(), credentials=users, indexes=False)
    if statistics:
        async with archive.database.engine.begin() as connection:
            await connection.execute(text("ANALYZE TABLE events" if archive.database.kind == "mysql" else "ANALYZE"))
    await archive.close()


@pytest.fixture(scope="module")
def filled_once(new_archive: NewArchive) -> Callable[[str, bool], str]:
    """Return a function that returns the URL of a filled archive of a kind of database. Tests must not change it."""

    @cache
    def filled(kind: str, statistics: bool) -> str:
        url = new_archive(kind)
        in_thread(fill(url, statistics=statistics))
        return url

    return filled


@pytest.fixture(params=DATABASES)
def kind(request: pytest.FixtureRequest) -> str:
    """Return a kind of database."""
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["without statistics", "with statistics"])
def statistics(request: pytest.FixtureRequest) -> bool:
    """Return whether the planner has statistics."""
    return bool(request.param)


@pytest.fixture
def filled(
    filled_once: Callable[[str, bool], str], opened: Callable[..., Archive], kind: str, statistics: bool
) -> Archive:
    """Open a filled archive, which several tests use."""
    return opened(filled_once(kind, statistics), timeout=PATIENCE)


@pytest.fixture
async def own(archive: Archive) -> Archive:
    """Fill an archive for one test, without statistics."""
    await append(archive, *rows(), indexes=False)
    return archive


async def test_pages_scan_the_posts_of_their_authors_only(filled: Archive) -> None:
    """The scans have both ends of the window as conditions of the index."""
    some, many = range(1, 101), range(1, 1001)
    for read in (
        lambda: filled.merge([1], FORWARD),
        lambda: filled.merge(some, FORWARD),
        lambda: filled.merge(some, BACKWARD),
        lambda: filled.merge(many, FORWARD),
        lambda: filled.merge(many, BACKWARD),
        lambda: filled.slices([(1, FORWARD), (2, BACKWARD)]),
        lambda: filled.slices([(author, FORWARD) for author in many]),
    ):
        assert await plans_of(filled, read) == {BY_LISTED, BY_NUMBER}


async def test_pages_do_not_read_all_posts_of_their_authors(archive: Archive) -> None:
    """With a few hundred posts per author, PostgreSQL would otherwise read and sort all of them."""
    await append(archive, *(post(number, number % 100) for number in range(1, 20_001)), indexes=False)
    for read in (
        lambda: archive.merge(range(100), Window(31, True)),
        lambda: archive.merge(range(100), Window(31, False, 50, 18_000)),
        lambda: archive.slices([(author, Window(31, True)) for author in range(100)]),
    ):
        assert await plans_of(archive, read) == {BY_LISTED, BY_NUMBER}


async def test_ids_and_counts_read_the_index_of_the_author_only(filled: Archive) -> None:
    for read in (
        lambda: filled.post_ids(1, 5, 100),
        lambda: filled.post_counts([(1, 100)]),
        lambda: filled.post_counts([(author, 5000) for author in range(1, 301)]),
    ):
        assert await plans_of(filled, read) == {BY_LISTED}


async def test_owners_of_likes_and_lists_are_found_in_order(filled: Archive) -> None:
    """The page does not read and sort the rest of the index."""
    reads = {post_list.column: partial(filled.owners, post_list, 50, 10) for post_list in POST_LISTS}
    for column, read in (("subject", partial(filled.liked_posts, 50, 10)), *reads.items()):
        [plan] = await steps_of(filled, read)
        assert [step for step in plan if f"events_by_{column}" in step]
        assert [step for step in plan if re.search("sort|TEMP B-TREE|Seq Scan", step, re.IGNORECASE)] == []


async def test_reposts_are_read_by_their_subject_and_kind_only(filled: Archive) -> None:
    """Likes and follows of the same subject are not read. Nor are other posts when old reposts are cleared."""
    for read in (
        lambda: filled.post_ids(1, 5, 100, REPOSTS),
        lambda: filled.post_counts([(1, 100)], REPOSTS),
        lambda: filled.post_rows([(1, FORWARD), (2, BACKWARD)], REPOSTS),
    ):
        assert BY_SUBJECT in (plans := await plans_of(filled, read))
        assert plans <= {BY_SUBJECT, BY_NUMBER}


async def test_the_public_timeline_is_read_in_order(filled: Archive) -> None:
    """A single index scan by number stops early. Nothing is sorted, whichever authors are excluded."""
    for window in (FORWARD, BACKWARD):
        for hidden in (frozenset[int](), frozenset({1, 2, 3})):
            read = partial(filled.published, window, hidden)
            assert await plans_of(filled, read) == {BY_NUMBER}
            assert slow_steps(await steps_of(filled, read)) == []


async def test_posts_that_are_not_filled_in_are_read_in_order(filled: Archive) -> None:
    """The statement reads no other kinds of events and no posts outside the window."""
    await set_rest(filled, 3000)
    for window in (Window(11, True, 0, 2500), BACKWARD):
        plans = await plans_of(filled, partial(filled.published, window, frozenset({1})))
        assert {step for step in plans if "Filter: ((listed_by" not in step} == {BY_KIND, BY_NUMBER}
        assert slow_steps(await steps_of(filled, partial(filled.published, window))) == []
    plans = await plans_of(filled, partial(filled.move_public_posts, 10, STORE))
    assert {BY_KIND} <= plans <= {BY_KIND, BY_NUMBER}, "and the posts that the table holds, by number"
    await set_rest(filled, 0)


async def set_rest(archive: Archive, rest: int) -> None:
    """Set the number below which posts have not been filled in."""
    async with archive.database.engine.begin() as connection:
        await connection.execute(text("UPDATE public_moves SET rest = :rest WHERE author = 0"), {"rest": rest})


async def test_moves_search_the_posts_of_their_author(own: Archive) -> None:
    """Moves read the newest posts first, in the order of the index."""
    await append(own, EventRow(5001, SUSPENSION, 1, None, "{}"))
    assert slow_steps(await steps_of(own, partial(own.move_public_posts, 10, STORE))) == []
    await append(own, EventRow(5002, UNSUSPENSION, 1, None, "{}"))
    assert await plans_of(own, partial(own.move_public_posts, 10, STORE)) == {BY_LISTED, BY_NUMBER}


async def test_events_are_found_by_number(filled: Archive) -> None:
    for read in (
        lambda: filled.get_many(range(1, 11)),
        lambda: filled.look_up(range(1, 11)),
        lambda: filled.kinds_of(range(1, 11)),
        lambda: filled.range(50, 90, 100),
    ):
        assert await plans_of(filled, read) == {BY_NUMBER}


async def test_ranges_are_read_in_order(filled: Archive) -> None:
    """The read does not read and sort the rest of the range."""
    for read in (lambda: filled.range(50, 5000, 10), lambda: filled.user_ids(50, 10)):
        [plan] = await steps_of(filled, read)
        assert [step for step in plan if re.search("sort|TEMP B-TREE|Seq Scan", step, re.IGNORECASE)] == []


async def test_folds_read_the_events_of_their_owners_only(filled: Archive, kind: str, statistics: bool) -> None:
    """With statistics, which SQLite has only after ANALYZE, a fold may read all events of one owner."""
    if statistics and kind == "sqlite":
        pytest.skip("nothing runs ANALYZE on SQLite")
    for owners in ([2], range(1, 51)):
        kinds = [FOLLOW, UNFOLLOW]
        by_actor = await plans_of(filled, lambda: filled.by_actor(owners, [POST, FOLLOW], 50, 10))  # noqa: B023
        by_subject = await plans_of(filled, lambda: filled.by_subject(owners, kinds, 50, 10))  # noqa: B023
        assert (by_actor, by_subject) == ({BY_ACTOR, BY_NUMBER}, {BY_SUBJECT, BY_NUMBER})


async def test_appending_searches_pairs_and_numbers(own: Archive) -> None:
    """Ending a follow reads neither all follows of the follower nor all followers of the followee."""
    plans = await plans_of(own, lambda: append(own, deletion(5001, 7), unfollowed(5002, 1, 2)))

    assert plans == {BY_PAIR, BY_NUMBER}


async def test_late_events_search_their_subjects(own: Archive) -> None:
    """Late events find deletions and unfollows by their subjects, however many have come since."""
    await append(own, up_to=6000)

    plans = await plans_of(own, lambda: append(own, post(5500), followed(5600), low=5400, up_to=5700))

    assert plans <= {BY_PAIR, BY_SUBJECT, BY_NUMBER}
