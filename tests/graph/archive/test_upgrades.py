"""Upgrades of an archive of an earlier version, in SQLite, PostgreSQL and MariaDB."""

from collections.abc import Callable
from struct import pack

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import text, update
from sqlalchemy.exc import DBAPIError

from graph.archive import migrations
from graph.archive.archive import Archive
from graph.archive.codes import keyword_clause
from graph.archive.name_codes import name_query
from graph.archive.rows import UNREPOST, EventRow
from graph.archive.tables import NAMES
from graph.paging import Window
from graph.post_lists import QUOTES, REPOSTS
from graph.text.terms import keyword_of
from tests.graph.archive.events import STORE, append, deletion, list_changed, list_created, post, reposted
from tests.graph.archive.test_lists import listed
from tests.graph.archive.test_names import created, index_of
from tests.graph.archive.test_public_posts import as_old, finish, suspended, table, unsuspended

MANY = 1100
"""More events than a migration reads at once."""


async def execute(archive: Archive, statement: str) -> None:
    """Execute a statement in an archive's database."""
    async with archive.database.engine.begin() as connection:
        await connection.execute(text(statement))


async def test_a_migration_lists_the_posts_of_earlier_versions(
    archive_url: str, opened: Callable[..., Archive]
) -> None:
    """The migration can be repeated, because MySQL commits each step separately. Deleted posts stay unlisted."""
    archive = opened(archive_url)
    await append(archive, post(10, 1), post(11, 2), deletion(12, 10))
    await execute(archive, "UPDATE events SET listed_by = NULL")
    await execute(archive, "ALTER TABLE archive_state RENAME COLUMN quotes_upto TO watermark")
    await execute(archive, "UPDATE fanline_schema SET version_num = '0001'")

    migrated = opened(archive_url)

    assert [each.id for each in await migrated.merge([1, 2], Window(9, True))] == [11]


async def test_an_archiver_of_an_earlier_version_cannot_write_after_a_migration(
    archive_url: str, opened: Callable[..., Archive]
) -> None:
    """Its first statement, a change of the watermark, fails. Otherwise its posts would be in no list."""
    archive = opened(archive_url)
    await append(archive, post(10, 1))
    await execute(archive, "ALTER TABLE archive_state RENAME COLUMN quotes_upto TO watermark")
    await execute(archive, "UPDATE fanline_schema SET version_num = '0006'")
    of_earlier_version = "UPDATE archive_state SET watermark = 10 WHERE watermark = 10"
    await execute(archive, of_earlier_version)

    migrated = opened(archive_url)

    assert (await migrated.state()).watermark == 10
    with pytest.raises(DBAPIError, match="watermark"):
        await execute(archive, of_earlier_version)
    await execute(archive, "ALTER TABLE archive_state RENAME COLUMN quotes_upto TO public_upto")
    await execute(archive, "UPDATE fanline_schema SET version_num = '0006'")
    assert (await opened(archive_url).state()).watermark == 10, "the step can be repeated"


async def test_an_archiver_from_before_public_posts_cannot_write_after_a_migration(
    archive_url: str, opened: Callable[..., Archive]
) -> None:
    """Otherwise its posts would be missing from the public timeline. Previously suspended users stay out of it."""
    archive = opened(archive_url)
    await append(archive, post(10, 1), post(11, 2), suspended(12, 2), suspended(13, 1), unsuspended(14, 1))
    await as_old(archive)
    of_earlier_version = "UPDATE archive_state SET archived_upto = 14 WHERE archived_upto = 14"
    await execute(archive, of_earlier_version)

    migrated = opened(archive_url)

    assert (await migrated.state()).watermark == 14
    with pytest.raises(DBAPIError, match="archived_upto"):
        await execute(archive, of_earlier_version)
    await execute(archive, "ALTER TABLE archive_state RENAME COLUMN quotes_upto TO public_upto")
    await execute(archive, "UPDATE fanline_schema SET version_num = '0007'")
    again = opened(archive_url)
    await finish(again)
    assert await table(again) == {10: 1}, "the step can be repeated"


async def test_a_migration_finds_the_members_of_lists(archive_url: str, opened: Callable[..., Archive]) -> None:
    """More events are searched than one read returns, and some are damaged. The migration can be repeated."""
    archive = opened(archive_url)
    changes = [list_changed(100 + n, added=[7], owner=n) for n in range(MANY)]
    damaged = [EventRow(5000, "ListChanged", 1, 10, None), EventRow(5001, "ListChanged", 1, 10, "{}")]
    await append(archive, list_created(10, [7, 8]), *changes, *damaged, post(6000))
    await execute(archive, "DELETE FROM list_members")
    await execute(archive, "UPDATE events SET body = '[' WHERE number = 5001")
    await execute(archive, "ALTER TABLE archive_state RENAME COLUMN quotes_upto TO public_upto")
    await execute(archive, "UPDATE fanline_schema SET version_num = '0008'")
    of_earlier_version = "UPDATE archive_state SET public_upto = 6000 WHERE public_upto = 6000"
    await execute(archive, of_earlier_version)

    for step in ("first", "repeated"):
        migrated = opened(archive_url)
        assert len(await migrated.list_additions(7, 0, 5000)) == MANY + 1, step
        assert [row.number for row in await migrated.list_additions(8, 0, 9)] == [10], step
        await execute(archive, "UPDATE fanline_schema SET version_num = '0008'")

    with pytest.raises(DBAPIError, match="public_upto"):
        await execute(archive, of_earlier_version)


async def test_a_migration_lets_the_search_indexes_be_built_anew(
    archive_url: str, opened: Callable[..., Archive]
) -> None:
    """An earlier version indexed words with their accents. Until the rebuild, names are found as before."""
    archive = opened(archive_url)
    await append(archive, post(10, 1, "un café"), created(11, "login", "Zoë Ray"))
    clauses = [keyword_clause([keyword_of("cafe")])]
    await execute(archive, "DELETE FROM search_terms")
    index = await index_of(archive)
    accented = set(name_query("zoe").codes()) - set(name_query("z").codes())
    await execute(archive, f"DELETE FROM search_name_codes WHERE code IN ({', '.join(map(str, accented))})")  # noqa: S608
    left = pack(f"<{len(index[11] - accented)}i", *sorted(index[11] - accented))
    async with archive.database.engine.begin() as connection:
        await connection.execute(update(NAMES).where(NAMES.c.user == 11).values(codes=left))
    assert (await archive.candidates(clauses, Window(9, True), 9)).rows == []
    assert await archive.named(name_query("zoe").codes(), Window(9, True)) == ([], None)
    await execute(archive, "UPDATE fanline_schema SET version_num = '0009'")

    migrated = opened(archive_url)
    assert await migrated.named(name_query("ray").codes(), Window(9, True)) == ([11], None)
    await migrated.note_unindexed(STORE)
    while (some := await migrated.unindexed(9)) is not None:
        await migrated.close_gap(*some, 9, STORE)
    while await migrated.index_names(9, STORE):
        pass

    assert [row.number for row in (await migrated.candidates(clauses, Window(9, True), 9)).rows] == [10]
    for query in ("zoe", "ray"):
        assert await migrated.named(name_query(query).codes(), Window(9, True)) == ([11], None)
    assert await index_of(migrated) == index


async def test_plain_reposts_leave_the_lists_of_quotes(archive_url: str, opened: Callable[..., Archive]) -> None:
    """Reads are correct from the start. The column is emptied in steps, and the migration can be repeated."""
    archive = opened(archive_url)
    await append(archive, post(10, 1), post(11, 2, repost_of=10), *(reposted(n, n, 10) for n in range(12, 18)))
    await append(archive, EventRow(18, UNREPOST, 14, 10, '{"repost":14}'))
    await execute(archive, "UPDATE events SET repost_of = 10 WHERE kind = 'Reposted'")
    await execute(archive, "ALTER TABLE archive_state RENAME COLUMN quotes_upto TO members_upto")
    await execute(archive, "UPDATE fanline_schema SET version_num = '0010'")
    of_earlier_version = "UPDATE archive_state SET members_upto = 18 WHERE members_upto = 18"
    await execute(archive, of_earlier_version)

    for step in ("first", "repeated"):
        migrated = opened(archive_url)
        for _ in range(2):
            assert await listed(migrated, QUOTES, 10) == [11], step
            assert await listed(migrated, REPOSTS, 10) == [17, 16, 15, 13, 12], step
            assert (await migrated.post_counts([(10, 99)], QUOTES))[0] == [1], step
            assert await migrated.clear_reposts(2, STORE) is True, step
        assert await held_by(migrated, 10) == ([11, 17] if step == "first" else [11]), step
        while await migrated.clear_reposts(2, STORE):
            pass
        assert await held_by(migrated, 10) == [11], step
        await execute(archive, "UPDATE fanline_schema SET version_num = '0010'")

    with pytest.raises(DBAPIError, match="members_upto"):
        await execute(archive, of_earlier_version)


async def held_by(archive: Archive, original: int) -> list[int]:
    """Return the events with this post in the column of quotes."""
    async with archive.database.engine.begin() as connection:
        query = text("SELECT number FROM events WHERE repost_of = :original ORDER BY number")
        return list(await connection.scalars(query, {"original": original}))


async def test_a_new_archive_has_no_reposts_to_clear(archive_url: str, opened: Callable[..., Archive]) -> None:
    archive = opened(archive_url)
    await append(archive, post(10, 1), reposted(11, 2, 10))

    assert await held_by(archive, 10) == []
    assert await archive.clear_reposts(9, STORE) is False


async def test_a_new_archive_has_nothing_to_fill(archive_url: str, opened: Callable[..., Archive]) -> None:
    assert await opened(archive_url).next_move() is None


def test_the_revisions_are_those_that_an_upgrade_runs() -> None:
    newest_first = [script.revision for script in ScriptDirectory.from_config(migrations._config()).walk_revisions()]

    assert list(migrations.revisions()) == newest_first[::-1]
