"""Tests of reading events for folds from the archive in SQLite, PostgreSQL and MariaDB, compared with a model."""

from random import Random

import pytest

from graph.archive.archive import Archive
from graph.archive.rows import DELETION, FOLLOW, POST, UNFOLLOW, Credential, EventRow
from graph.model import MAX_NUMBER
from tests.graph.archive.events import append, deletion, followed, post, unfollowed


@pytest.fixture
async def filled(archive: Archive) -> list[EventRow]:
    """Fill the archive with posts and follows of 50 users."""
    random = Random(3)  # noqa: S311 - reproducible
    rows = []
    for number in range(2, 4000, 2):
        actor, subject = random.randrange(1, 51), random.randrange(1, 51)
        events = [post(number, actor), followed(number, actor, subject), unfollowed(number, actor, subject)]
        rows.append(random.choice(events))
    await append(archive, *rows, EventRow(MAX_NUMBER, POST, 7, None, '{"text":"last"}'))
    return [*rows, EventRow(MAX_NUMBER, POST, 7, None, '{"text":"last"}')]


async def test_ranges_are_read_by_number(archive: Archive, filled: list[EventRow]) -> None:
    """The lower end of a range is excluded, the upper end included."""
    assert await archive.range(0, MAX_NUMBER, 5000) == filled
    assert await archive.range(4, 10, 99) == [row for row in filled if 4 < row.number <= 10]
    assert await archive.range(4, 10, 2) == [row for row in filled if 4 < row.number <= 8]
    assert await archive.range(10, 10, 9) == []


@pytest.mark.parametrize("owner", ["actor", "subject"])
async def test_events_of_owners_are_read_in_steps(archive: Archive, filled: list[EventRow], owner: str) -> None:
    """Each step continues after the last number, for any owners, kinds and limits."""
    read = archive.by_actor if owner == "actor" else archive.by_subject
    for owners, kinds, limit in (
        ({7}, [POST, FOLLOW], 10),
        ({1, 2, 30}, [FOLLOW], 1000),
        (set(range(1, 2001)), [POST, FOLLOW, UNFOLLOW], 700),
        ({99}, [FOLLOW], 10),
        ({1, 2}, [DELETION], 10),
    ):
        expected = [row for row in filled if getattr(row, owner) in owners and row.kind in kinds]
        found: list[EventRow] = []
        while step := await read([*owners, *owners], kinds, found[-1].number if found else 0, limit):
            assert len(step) <= limit
            found += step
        assert found == expected


async def test_nothing_is_asked_for_nobody(archive: Archive) -> None:
    assert await archive.by_actor([], [POST], 0, 9) == []
    assert await archive.by_subject([1], [], 0, 9) == []
    assert await archive.kinds_of([]) == {}


async def test_kinds_of_rows(archive: Archive) -> None:
    """Rows that do not exist have no kind."""
    await append(archive, post(1), post(2), followed(3), deletion(4, 2))

    assert await archive.kinds_of([4, 2, 2, 1, 9]) == {1: POST, 2: "Redacted", 4: DELETION}
    assert await archive.kinds_of(range(5000)) == {1: POST, 2: "Redacted", 3: FOLLOW, 4: DELETION}


async def test_users_are_listed_in_steps(archive: Archive) -> None:
    users = [Credential(number, f"user{number}", None, number) for number in range(10, 5010)]
    await append(archive, up_to=5010, credentials=users)

    assert await archive.user_ids(0, 3) == [10, 11, 12]
    assert await archive.user_ids(12, 2) == [13, 14]
    assert await archive.user_ids(5009, 2) == []
    assert len(await archive.credentials(range(9, 6000))) == 5000
