"""The table of posts on the public timeline, with any order of events, moves and pages."""

from collections.abc import Callable
from random import Random, randrange

import pytest
from sqlalchemy import select, text

from graph.archive import public_posts
from graph.archive.archive import Archive
from graph.archive.rows import POST, REPOST, SUSPENSION, UNSUSPENSION, EventRow, post_of
from graph.archive.tables import PUBLIC_POSTS
from graph.model import MAX_NUMBER
from graph.paging import Window
from tests.graph.archive.events import STORE, append, deletion, held, post, statements_of

AUTHORS = range(1, 5)


def suspended(number: int, user: int = 1) -> EventRow:
    """Return the row of a suspension."""
    return EventRow(number, SUSPENSION, user, None, "{}")


def unsuspended(number: int, user: int = 1) -> EventRow:
    """Return the row of the end of a suspension."""
    return EventRow(number, UNSUSPENSION, user, None, "{}")


async def table(archive: Archive) -> dict[int, int]:
    """Return the posts in the table, with their authors."""
    async with archive.database.engine.begin() as connection:
        rows = await connection.execute(select(PUBLIC_POSTS))
        return {row.number: row.author for row in rows}


async def definition(archive: Archive) -> dict[int, int]:
    """Return the posts that the table must hold according to the events."""
    rows = await held(archive)
    newest = {row.actor: row.kind for row in sorted(rows) if row.kind in (SUSPENSION, UNSUSPENSION)}
    listed = [post_of(row) for row in rows if row.kind == POST]
    return {each.id: each.author for each in listed if each.listed and newest.get(each.author) != SUSPENSION}


async def finish(archive: Archive, limit: int = 500) -> None:
    """Finish all moves."""
    while await archive.move_public_posts(limit, STORE):
        pass


async def pages(
    archive: Archive, size: int, hidden: frozenset[int] = frozenset(), *, forward: bool = True
) -> list[int]:
    """Return the ids on all pages, newest first."""
    rest: Window | None = Window(size, forward)
    found: list[int] = []
    while rest is not None:
        rows, rest = await archive.published(rest, hidden)
        assert len(rows) <= size
        found += [row.number for row in rows]
    assert found == sorted(found, reverse=forward)
    return found if forward else found[::-1]


def history(random: Random, size: int) -> list[EventRow]:
    """Return random events: posts (not all of them listed), reposts, deletions and suspensions."""
    rows: list[EventRow] = []
    for number in range(1, size + 1):
        author, dice = random.choice(AUTHORS), random.random()
        if dice < 0.5:
            rows.append(post(number, author, listed=random.random() < 0.7))
        elif dice < 0.6:
            rows.append(EventRow(number, REPOST, author, random.randint(1, number), '{"author":1}'))
        elif dice < 0.8:
            published = [row for row in rows if row.kind == POST] or [post(1)]
            rows.append(deletion(number, random.choice(published).number))
        else:
            rows.append(random.choice([suspended, unsuspended])(number, author))
    return rows


async def as_old(archive: Archive) -> None:
    """Turn an archive into one of an earlier version without the table."""
    async with archive.database.engine.begin() as connection:
        for statement in (
            "DROP TABLE public_posts",
            "DROP TABLE public_moves",
            "DROP TABLE list_members",
            "ALTER TABLE archive_state RENAME COLUMN quotes_upto TO archived_upto",
            "UPDATE fanline_schema SET version_num = '0007'",
        ):
            await connection.execute(text(statement))


async def arrive(archive: Archive, random: Random, rows: list[EventRow]) -> None:
    """Append events in random order, in batches, with steps of moves between them."""
    random.shuffle(rows)
    while rows:
        size = random.randint(1, 12)
        batch, rows = rows[:size], rows[size:]
        await append(archive, *batch, low=0, up_to=max([(await archive.state()).watermark, *(r.number for r in batch)]))
        for _ in range(random.randint(0, 3)):
            await archive.move_public_posts(random.randint(1, 5), STORE)


async def test_the_table_does_not_depend_on_the_order_of_events_and_moves(archive: Archive) -> None:
    """Posts, deletions and suspensions arrive in any order, and moves stop at any step."""
    random = Random(randrange(1000))  # noqa: S311 - reproducible
    await arrive(archive, random, history(random, 120))
    await finish(archive, random.randint(1, 20))

    assert await table(archive) == await definition(archive)


async def test_an_old_archive_is_filled_while_it_is_used(archive: Archive, opened: Callable[..., Archive]) -> None:
    """Its pages have the same posts before, during and after the filling, in both directions."""
    random = Random(randrange(1000))  # noqa: S311 - reproducible
    rows = history(random, 160)
    await append(archive, *rows[:100])
    await as_old(archive)
    migrated = opened(archive.database.url.render_as_string(hide_password=False), timeout=30.0)
    await migrated.migrate()
    assert await table(migrated) == {}

    await append(migrated, *rows[100:])
    more = True
    while more:
        shown = await definition(migrated)
        expected, gone = sorted(shown, reverse=True), frozenset(AUTHORS) - {*shown.values()}
        for forward in (True, False):
            found = await pages(migrated, random.randint(1, 30), gone, forward=forward)
            moving = await migrated.next_move()
            if moving is None or moving.author == public_posts.ALL:
                assert found == expected
            assert set(found) <= set(expected)
        more = await migrated.move_public_posts(random.randint(5, 40), STORE)

    assert await table(migrated) == await definition(migrated)


async def test_the_newest_decision_wins(archive: Archive) -> None:
    """The newest decision wins after any half-finished move and with any late event."""
    await append(archive, *(post(number) for number in range(1, 21)))
    await append(archive, suspended(30))
    await archive.move_public_posts(5, STORE)
    assert sorted(await table(archive)) == [*range(1, 16)], "the newest leave first"

    await append(archive, unsuspended(31))
    await append(archive, suspended(25), low=20, up_to=31)
    await archive.move_public_posts(3, STORE)
    assert sorted(await table(archive)) == [*range(1, 16), 18, 19, 20]
    await append(archive, suspended(32), unsuspended(33))
    await finish(archive, 4)

    assert sorted(await table(archive)) == [*range(1, 21)]


async def test_a_suspended_author_adds_nothing(archive: Archive) -> None:
    """A suspended author's late posts are not added either. They return with the other posts."""
    await append(archive, post(1), suspended(10))
    await finish(archive)
    await append(archive, post(5), post(6, 2), low=1, up_to=10)
    await append(archive, post(11))
    assert await table(archive) == {6: 2}

    await append(archive, unsuspended(12))
    await finish(archive)
    assert await table(archive) == {1: 1, 5: 1, 6: 2, 11: 1}


async def test_a_moving_author_is_left_out_at_once(archive: Archive) -> None:
    await append(archive, *(post(number, 2) for number in range(1, 31)))
    await append(archive, *(post(number, 1) for number in range(31, 2131)))
    assert (await archive.published(Window(2, True))).rows[0].number == 2130
    await append(archive, suspended(2200))

    with statements_of(archive) as sent:
        rows, rest = await archive.published(Window(21, True))
    assert [row.number for row in rows] == [*range(30, 9, -1)]
    assert rest is not None
    assert len(sent) == 5, "one transaction, with the progress, three scans and the rows"


async def test_hidden_authors_are_passed_over_in_bounded_steps(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that has examined many posts ends there, and the next page continues from there."""
    monkeypatch.setattr(public_posts, "SCANNED", 50)
    await append(archive, *(post(number, 1 if 10 < number <= 400 else 2) for number in range(1, 501)))

    rows, rest = await archive.published(Window(5, True, 0, 301), frozenset({1}))
    assert (rows, rest) == ([], Window(5, True, 0, 246))
    for forward in (True, False):
        found = await pages(archive, 7, frozenset({1}), forward=forward)
        assert found == [*range(500, 400, -1), *range(10, 0, -1)]


async def test_a_page_has_a_fixed_number_of_statements(archive: Archive) -> None:
    await append(archive, *(post(number, number % 7) for number in range(1, 200)))

    for window in (Window(21, True), Window(100, True), Window(21, False, 20, MAX_NUMBER)):
        with statements_of(archive) as sent:
            await archive.published(window, frozenset({1000}))
        assert len(sent) == 3
