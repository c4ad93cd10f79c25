"""Tests of the index of users by name, in SQLite, PostgreSQL and MariaDB."""

from collections.abc import Sequence
from random import Random

import orjson
import pytest
from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive import names
from graph.archive.archive import Archive
from graph.archive.codes import code_of
from graph.archive.name_codes import MAX_CODES, codes_of, name_query
from graph.archive.rows import EventRow
from graph.archive.tables import NAME_CODES, NAMES
from graph.model import MAX_NUMBER
from graph.paging import Window
from tests.graph.archive.events import STORE, append, post, statements_of

ALL = Window(50, True)


def created(number: int, login: str, name: str) -> EventRow:
    """Return the row of a sign-up."""
    body = {"login": login, "name": name, "nonce": "x"}
    return EventRow(number, "UserCreated", number, None, orjson.dumps(body).decode())


def renamed(number: int, user: int, name: str | None = None, bio: str | None = None) -> EventRow:
    """Return the row of a change of a profile."""
    body = {field: value for field, value in (("name", name), ("bio", bio)) if value is not None}
    return EventRow(number, "ProfileChanged", user, None, orjson.dumps(body).decode())


async def index_of(archive: Archive) -> dict[int, set[int]]:
    """Return the codes of each indexed user, after checking that both tables agree."""

    async def work(connection: AsyncConnection) -> dict[int, set[int]]:
        codes: dict[int, set[int]] = {}
        for code, user in await connection.execute(select(NAME_CODES.c.code, NAME_CODES.c.user)):
            codes.setdefault(user, set()).add(code)
        rows = await connection.execute(select(NAMES.c.user, NAMES.c.codes).where(NAMES.c.user != names.PROGRESS))
        assert {user: set(names.codes_in(packed)) for user, packed in rows} == codes
        return codes

    return await archive.database.transaction(work)


async def found(archive: Archive, text: str, window: Window = ALL) -> list[int]:
    """Return all users in a window who match a text, read in parts, in the direction of paging."""
    users: list[int] = []
    rest: Window | None = window
    while rest is not None:
        some, following = await archive.named(name_query(text).codes(), rest)
        assert len(some) <= window.count
        assert following is None or (following.high < rest.high if window.forward else following.low > rest.low)
        users += some
        rest = following
    assert users == sorted(set(users), reverse=window.forward)
    return users


def test_a_user_has_the_codes_of_beginnings_and_of_parts_of_runs() -> None:
    terms = {"a", "an", "ann", "anna", "s", "sm", "王", "小", "明", "王小", "小明"}
    assert codes_of("anna", "Anna SM 王小明") == {code_of(term) for term in terms}
    assert codes_of("x", "abcdefghijklm") >= {code_of("abcdefghij")}
    assert code_of("abcdefghijk") not in codes_of("x", "abcdefghijklm")


@pytest.mark.parametrize(
    ("text", "login", "name", "matches"),
    [
        ("an", "anna", "X", True),
        ("AN", "x", "Anna", True),
        ("nna", "anna", "Anna", False),
        ("@anna", "anna", "X", True),
        ("smith an", "x", "Anna Smith", True),
        ("ann smi", "anna_2", "Smith", True),
        ("anna jones", "anna", "Anna Smith", False),
        ("小明", "x", "王小明", True),
        ("王明", "x", "王小明", False),
        ("明 an", "anna", "王小明", True),
        ("mü", "x", "MÜLLER", True),
        ("mul", "x", "MÜLLER", True),
        ("lodz", "x", "Łódź", True),
        ("#red", "x", "#Red fox", True),
        ("abcdefghijkl", "x", "abcdefghijklmn", True),
        ("abcdefghijkz", "x", "abcdefghijklmn", False),
    ],
)
def test_a_query_matches_beginnings_of_words_and_parts_of_runs(text: str, login: str, name: str, matches: bool) -> None:
    query = name_query(text)

    assert query.matches(login, name) is matches
    assert 1 <= len(query.codes()) <= MAX_CODES
    if matches:
        assert set(query.codes()) <= codes_of(login, name)


async def test_names_are_indexed_as_they_are_archived(archive: Archive) -> None:
    """A new name replaces the old one. A change of another field changes nothing."""
    await append(archive, created(1, "anna", "Anna Smith"), created(2, "ben", "Ben"), post(3))
    await append(archive, renamed(4, 1, "Anna Jones"), renamed(5, 2, bio="Anna"), renamed(6, 2, "Benno"))

    assert await index_of(archive) == {1: codes_of("anna", "Anna Jones"), 2: codes_of("ben", "Benno")}
    assert await found(archive, "anna") == [1]
    assert await found(archive, "smith") == []
    assert await found(archive, "b") == [2]


async def test_the_newest_name_counts_in_any_order_and_repetition(archive: Archive) -> None:
    """The newest name counts even if the sign-up arrives last, after a failover or a cut has found it missing."""
    events = [
        created(1, "anna", "A"),
        created(2, "ben", "B"),
        renamed(3, 1, "C"),
        renamed(4, 1, "D"),
        renamed(5, 2, "E"),
    ]
    expected = {1: codes_of("anna", "D"), 2: codes_of("ben", "E")}
    for seed in range(6):
        random = Random(seed)  # noqa: S311 - reproducible
        await append(archive, up_to=(await archive.state()).watermark or 9)
        for row in [*random.sample(events, 5), *random.sample(events, 2)]:
            await archive.insert([row], store=STORE)
            await index_of(archive)
        assert await index_of(archive) == expected


@pytest.mark.parametrize("body", [None, '{"login":"anna"}', "{}", "nonsense"])
async def test_a_damaged_event_sets_no_name(archive: Archive, body: str | None) -> None:
    await append(archive, EventRow(1, "UserCreated", 1, None, body), renamed(2, 1, "Anna"))
    assert await index_of(archive) == {}
    assert await archive.index_names(3, STORE)
    assert await index_of(archive) == {}


async def test_users_are_found_in_parts_in_both_directions(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every window finds the same users as a plain scan, with one word and with several."""
    monkeypatch.setattr(names, "SCANNED", 3)
    random = Random(3)  # noqa: S311 - reproducible
    words = ["ann", "anna", "ben", "bea", "王小", "明", "小明"]
    users = {n: (f"{random.choice('ab')}{n}", " ".join(random.choices(words, k=2))) for n in range(1, 61)}
    await append(archive, *(created(n, login, name) for n, (login, name) in users.items()))

    for _ in range(40):
        text = " ".join(random.sample(["a", "an", "anna", "be", "b", "王", "小明"], random.choice([1, 1, 2, 3])))
        low, high = sorted([random.randrange(0, 61), random.choice([random.randrange(0, 62), MAX_NUMBER + 1])])
        window = Window(random.choice([1, 2, 7]), random.random() < 0.5, low, high)
        some = await found(archive, text, window)
        assert {n for n, user in users.items() if low < n < high and name_query(text).matches(*user)} <= set(some)
        assert all(set(name_query(text).codes()) <= codes_of(*users[n]) for n in some)


async def test_names_that_were_not_indexed_are_indexed_later(archive: Archive) -> None:
    """Indexing starts at the oldest sign-up, with the newest name; names that arrive meanwhile are indexed at once."""
    await append(archive)
    rows = [created(n, f"user{n}", f"Name {n}") for n in range(1, 8)] + [renamed(8, 2, "Other")]
    await archive.append(rows, [], store=STORE, watermark=0, up_to=8, indexes=False)
    assert await index_of(archive) == {}

    assert await archive.index_names(3, STORE)
    await append(archive, created(9, "late", "Late"), renamed(10, 3, "Third"), renamed(11, 6, "Sixth"))
    assert set(await index_of(archive)) == {1, 2, 3, 9}
    while await archive.index_names(3, STORE):
        pass

    expected = {n: codes_of(f"user{n}", f"Name {n}") for n in range(1, 8)}
    expected |= {2: codes_of("user2", "Other"), 3: codes_of("user3", "Third"), 6: codes_of("user6", "Sixth")}
    assert await index_of(archive) == expected | {9: codes_of("late", "Late")}
    assert not await archive.index_names(3, STORE)


async def test_a_later_seeding_is_indexed_too(archive: Archive) -> None:
    """Although everything was indexed before, a later seeding is indexed, and renames are indexed at once."""
    await append(archive, created(1, "anna", "A"))
    while await archive.index_names(3, STORE):
        pass
    rows = [renamed(2, 1, "B"), created(3, "ben", "B"), created(4, "cat", "C")]
    await archive.append(rows, [], store=STORE, watermark=1, up_to=4, indexes=False)
    assert await index_of(archive) == {1: codes_of("anna", "B")}

    while await archive.index_names(1, STORE):
        pass
    assert set(await index_of(archive)) == {1, 3, 4}


async def test_an_emptied_index_is_built_anew(archive: Archive) -> None:
    await append(archive, created(1, "anna", "A"), renamed(2, 1, "B"))
    while await archive.index_names(3, STORE):
        pass
    before = await index_of(archive)

    async def empty(connection: AsyncConnection) -> None:
        for table in (NAMES, NAME_CODES):
            await connection.execute(delete(table))

    await archive.database.transaction(empty)
    while await archive.index_names(3, STORE):
        pass
    assert await index_of(archive) == before != {}


async def test_finding_users_reads_the_index_in_order(archive: Archive) -> None:
    """A page reads only the entries of each code that it needs, however many users have the code."""
    await append(archive, *(created(n, f"user{n}", "Anna Smith") for n in range(1, 1500)))
    explain = "EXPLAIN QUERY PLAN" if archive.database.kind == "sqlite" else "EXPLAIN"
    for forward in (True, False):
        with statements_of(archive) as sent:
            await archive.named([code_of("anna"), code_of("smith")], Window(11, forward, 50, 1400))
        assert len(sent) == 3
        plans: list[Sequence[str]] = []
        async with archive.database.engine.connect() as connection:
            for statement, parameters in sent:
                rows = await connection.exec_driver_sql(f"{explain} {statement}", parameters)
                plans.append(["|".join(map(str, row)) for row in rows])
        for plan in plans[:2]:
            step = "\n".join(plan)
            assert not any(
                slow in step for slow in ("Seq Scan", "Sort", "filesort", "TEMP B-TREE", "|ALL|", "SCAN ")
            ), step


async def test_other_events_cost_no_statement(archive: Archive) -> None:
    await append(archive)
    with statements_of(archive) as sent:
        await append(archive, post(1), post(2))
    assert not [statement for statement, _ in sent if "search_name" in statement]
