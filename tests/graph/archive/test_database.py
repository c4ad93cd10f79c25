"""The archive's database: URLs, migrations by several processes, and outages that are said in time and end."""

import asyncio
import logging
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, text

from graph.archive.archive import Archive
from graph.archive.database import read_url
from graph.archive.migrations import VERSION_TABLE, SchemaTooNew
from graph.archive.statements import metadata
from graph.errors import ArchiveUnavailable
from graph.model import Post
from tests.support.databases import PASSWORD, Server

T = TypeVar("T")

SHORT = 0.5  # seconds that a database has in tests of outages
SLACK = 3.0
PATIENCE = 20.0


@pytest.fixture
async def opened() -> AsyncIterator[Callable[..., Archive]]:
    """Open archives, which are closed at the end."""
    archives: list[Archive] = []

    def open_(url: str, **options: Any) -> Archive:
        archives.append(Archive(url, **options))
        return archives[-1]

    yield open_
    for archive in archives:
        await archive.close()


@pytest.fixture(params=["postgresql", "mariadb"])
def server(request: pytest.FixtureRequest, sql_servers: Callable[[str], Server]) -> Server:
    """Give a server that this test may kill and freeze; whoever needs it next starts it again."""
    return sql_servers(request.param)


async def run(archive: Archive, *statements: str) -> None:
    """Do something to an archive's database from outside."""
    async with archive.database.engine.begin() as connection:
        for statement in statements:
            await connection.execute(text(statement))


async def unavailable(archive: Archive) -> str:
    """Read, and see in good time that it cannot be done; give the reason."""
    began = time.monotonic()
    with pytest.raises(ArchiveUnavailable) as caught:
        await archive.get_many([1])
    assert time.monotonic() - began < archive.database.seconds + SLACK
    assert str(caught.value) == "Older posts cannot be read at the moment. Try again later."
    return caught.value.reason


async def eventually(call: Callable[[], Awaitable[T]]) -> T:
    """Repeat a call that may come too early, or be too slow for a short bound on a busy machine."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await call()
            except ArchiveUnavailable:
                await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("sqlite:///a/b.sqlite", "sqlite+aiosqlite:///a/b.sqlite"),
        ("sqlite+aiosqlite:////a/b", "sqlite+aiosqlite:////a/b"),
        ("postgres://u:p@h/d", "postgresql+asyncpg://u:p@h/d"),
        ("postgresql://u:p%40@h:1/d?sslmode=require", "postgresql+asyncpg://u:p%40@h:1/d?ssl=require"),
        ("postgresql+asyncpg:///d?host=/run", "postgresql+asyncpg:///d?host=%2Frun"),
        ("mysql://h/d", "mysql+asyncmy://h/d"),
        ("mariadb://h/d?unix_socket=/run/x", "mysql+asyncmy://h/d?unix_socket=%2Frun%2Fx"),
        ("mysql+asyncmy://h/d?ssl_ca=/ca.pem", "mysql+asyncmy://h/d?ssl_ca=%2Fca.pem"),
    ],
)
def test_a_url_can_be_plain_or_name_its_driver(given: str, used: str) -> None:
    assert read_url(given).render_as_string(hide_password=False) == used


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("", "must begin with sqlite:///"),
        ("archive.sqlite", "must begin with sqlite:///"),
        ("http://u:secret@h/d", "must begin with sqlite:///"),
        ("postgresql+psycopg://u:secret@h/d", "must begin with sqlite:///"),
        ("sqlite://", "must name a file"),
        ("sqlite:///:memory:", "must name a file"),
        ("sqlite://secret/x", "must name a file"),
        ("sqlite:///x?mode=ro", "has the unknown option mode"),
        ("postgresql://u:secret@h", "must name a database"),
        ("mysql://u:secret@h/", "must name a database"),
        ("postgres://u:secret@h:port/d", "is not a URL like postgres://"),
        ("postgresql://u:secret@h:70000/d", "must have a port from 1 to 65535"),
        ("mysql://u:secret@h/d?charset=latin1", "has the unknown option charset; known are ssl_ca"),
    ],
)
def test_a_url_that_names_no_archive_is_refused(url: str, sentence: str) -> None:
    """The sentence says what it may be, and never shows a password."""
    with pytest.raises(ValueError, match=sentence) as caught:
        Archive(url)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_processes_that_start_at_once_share_one_archive(archive_url: str) -> None:
    """They take turns to migrate it, and all find the one identity that was made."""
    script = """
        import asyncio, os, sys
        from graph.archive.archive import Archive

        async def main():
            archive = Archive(sys.argv[1])
            await archive.migrate()
            print(await archive.identity(), flush=True)
            await archive.close()

        children, (gate, opener) = [], os.pipe()
        for _ in range(3):
            children.append(os.fork())
            if children[-1] == 0:
                os.close(opener)
                os.read(gate, 1)
                asyncio.run(main())
                sys.exit()
        os.close(opener)
        sys.exit(any([os.waitpid(child, 0)[1] for child in children]))
    """
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(script), archive_url]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    identities = done.stdout.split()
    assert len(identities) == 3
    assert len(set(identities)) == 1
    assert done.stderr == ""


async def test_the_tables_are_those_that_the_statements_use(
    archive_url: str, opened: Callable[..., Archive], caplog: pytest.LogCaptureFixture
) -> None:
    """Alembic finds no difference between what the migrations made and what the code declares; nothing is warned of."""
    archive = opened(archive_url)
    await archive.migrate()

    def differences(connection: Connection) -> Any:
        options = {"version_table": VERSION_TABLE, "compare_type": True}
        return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)

    async with archive.database.engine.connect() as connection:
        assert await connection.run_sync(differences) == []
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_migration_that_broke_off_is_taken_up(archive_url: str, opened: Callable[..., Archive]) -> None:
    """Also where each of its steps was committed: tables and identity that are there stay."""
    archive = opened(archive_url)
    identity = await archive.identity()
    await run(archive, "DELETE FROM fanline_schema", "DROP TABLE fanline_posts")

    again = opened(archive_url)
    await again.migrate()

    assert await again.identity() == identity
    assert await again.add(1, [Post(1, 1, "x")], 0, 1)


async def test_an_archive_of_a_newer_version_is_refused(archive_url: str, opened: Callable[..., Archive]) -> None:
    """By name, and by every use; nothing is changed."""
    archive = opened(archive_url)
    await archive.migrate()
    await run(archive, "UPDATE fanline_schema SET version_num = '9999'")

    older = opened(archive_url)
    for use in (older.migrate, older.identity, lambda: older.add(1, [], 0, 1)):
        with pytest.raises(
            SchemaTooNew, match="revision 9999 by a newer version of Fanline; this one knows up to 0001"
        ):
            await use()
    await run(archive, "UPDATE fanline_schema SET version_num = '0001'")
    assert (await older.floors(1)).moved == 0


async def test_two_archives_migrate_in_one_process(tmp_path: Path, opened: Callable[..., Archive]) -> None:
    """Each its own database, interleaved, and the first use of each migrates it."""
    urls = [f"sqlite:///{tmp_path}/deep/er/{n}.sqlite" for n in range(4)]

    identities = await asyncio.gather(*(opened(url).identity() for url in urls))

    assert len(set(identities)) == 4


async def test_callers_that_are_cancelled_leave_whole_transactions(
    archive_url: str, opened: Callable[..., Archive]
) -> None:
    """At whatever moment they go: rows are there exactly if the floor moved, and the archive goes on."""
    archive = opened(archive_url)
    await archive.migrate()
    random = Random(3)  # noqa: S311 - moments to try, no secret
    for author in range(1, 41):
        caller = asyncio.create_task(archive.add(author, [Post(author, author, "x")], 0, author))
        for _ in range(random.randrange(40)):
            await asyncio.sleep(0)
        await asyncio.sleep(random.choice([0, 0.001, 0.004]))
        caller.cancel()
        await asyncio.wait({caller})
    await archive.close()

    archive = opened(archive_url)
    floors = [(await archive.floors(author)).moved for author in range(1, 41)]
    rows = await archive.get_many(range(1, 41))
    assert floors == [row.id if row else 0 for row in rows]
    assert any(rows)


async def test_a_killed_server_is_unavailable_and_comes_back(server: Server, opened: Callable[..., Archive]) -> None:
    """While it is away every call says so; then the same archive goes on, with all that was committed."""
    archive = opened(server.database())
    await archive.add(1, [Post(5, 1, "kept")], 0, 5)
    under_way = [asyncio.create_task(archive.add(2, [Post(6, 2, "x")], n, n + 1)) for n in range(8)]
    await asyncio.sleep(0.001)
    server.stop()

    for _ in range(3):
        assert await unavailable(archive)
    for outcome in await asyncio.gather(*under_way, return_exceptions=True):
        assert outcome in (True, False) or isinstance(outcome, ArchiveUnavailable)

    server.start()
    assert await archive.get_many([5]) == [Post(5, 1, "kept")]
    assert await archive.add(1, [Post(7, 1, "more")], 5, 7)


async def test_a_server_that_restarts_unnoticed_disturbs_nobody(server: Server, opened: Callable[..., Archive]) -> None:
    """Connections of its former life are replaced before they are used."""
    archive = opened(server.database())
    await asyncio.gather(*(archive.floors(author) for author in range(8)))
    server.stop()
    server.start()

    assert len(await asyncio.gather(*(archive.floors(author) for author in range(20)))) == 20


async def test_a_server_that_hangs_is_unavailable_in_time(server: Server, opened: Callable[..., Archive]) -> None:
    """For all who ask, on connections old and new; when it goes on, so does the archive."""
    archive = opened(server.database(), seconds=SHORT)
    fresh = opened(server.database(), seconds=SHORT)
    await eventually(archive.identity)
    with server.frozen():
        reasons = await asyncio.gather(*(unavailable(archive) for _ in range(20)), unavailable(fresh))
        assert all(reasons)
        await unavailable(archive)

    assert await eventually(fresh.identity) != await eventually(archive.identity)


async def test_an_archive_that_is_down_at_the_start_is_migrated_later(
    server: Server, opened: Callable[..., Archive]
) -> None:
    """By the first transaction that gets through; those that wait share the attempt."""
    archive = opened(server.database())
    server.stop()
    with pytest.raises(ArchiveUnavailable):
        await archive.migrate()
    await asyncio.gather(*(unavailable(archive) for _ in range(10)))

    server.start()
    assert len(set(await asyncio.gather(*(archive.identity() for _ in range(10))))) == 1


async def test_wrong_credentials_are_an_outage_that_names_no_password(
    server: Server, opened: Callable[..., Archive], caplog: pytest.LogCaptureFixture
) -> None:
    """The reason is for whoever runs the database."""
    wrong = read_url(server.database()).set(username="nobody_here", password="s3cret" + PASSWORD)

    reason = await unavailable(opened(wrong.render_as_string(hide_password=False)))

    assert "nobody_here" in reason
    assert "s3cret" not in reason + caplog.text


async def test_a_mistake_of_ours_is_no_outage(archive_url: str, opened: Callable[..., Archive]) -> None:
    """It is raised as it is, without the texts that went with it."""
    archive = opened(archive_url)
    nobody: Any = None
    broken = Post(1, nobody, "private words")

    with pytest.raises(Exception, match="author") as caught:
        await archive.add(1, [broken], 0, 1)

    assert not isinstance(caught.value, ArchiveUnavailable)
    assert (await archive.floors(1)).moved == 0


async def test_a_file_that_cannot_be_opened_is_unavailable(tmp_path: Path, opened: Callable[..., Archive]) -> None:
    """A folder in its place, a file in its folder's place, or a file of another kind: until it is put right."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"no database at all" * 100)
    for path in ("folder", "file", "file/archive.sqlite"):
        archive = opened(f"sqlite:///{tmp_path}/{path}")
        for _ in range(3):
            assert await unavailable(archive)

    (tmp_path / "file").unlink()
    assert await archive.identity()


async def test_a_file_that_somebody_locks_is_unavailable(tmp_path: Path, opened: Callable[..., Archive]) -> None:
    """For writers, once they have waited long enough; readers see what was there, and a short lock is waited for."""
    patient, hasty = (opened(f"sqlite:///{tmp_path}/archive.sqlite", seconds=bound) for bound in (PATIENCE, SHORT))
    await patient.add(1, [Post(1, 1, "x")], 0, 1)
    await eventually(hasty.identity)
    with closing(sqlite3.connect(tmp_path / "archive.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ArchiveUnavailable):
            await hasty.add(1, [Post(2, 1, "x")], 1, 2)
        assert await patient.count(1, 9) == 1

        waiting = asyncio.create_task(patient.add(1, [Post(2, 1, "x")], 1, 2))
        await asyncio.sleep(0.1)
        other.execute("ROLLBACK")
        assert await waiting
