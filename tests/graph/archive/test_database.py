"""Tests of the archive's database: URLs, concurrent migrations, and outages."""

import asyncio
import logging
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Awaitable, Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, text

from graph.archive.archive import Archive
from graph.archive.database import TIMEOUT_SECONDS, read_url
from graph.archive.migrations import VERSION_TABLE, SchemaTooNew
from graph.archive.rows import ArchiveChanged, Credential, EventsRefused
from graph.archive.tables import metadata
from graph.errors import ArchiveUnavailable
from graph.model import Post
from tests.graph.archive.events import append, followed, held, post
from tests.support.databases import PASSWORD, SERVERS, Server

T = TypeVar("T")

SHORT_TIMEOUT = 0.3
LONG_TIMEOUT = 20.0


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, sql_servers: Callable[[str], Server]) -> Server:
    """Return a server that tests may kill and freeze. The next test that needs it starts it again."""
    return sql_servers(request.param)


async def run(archive: Archive, *statements: str) -> None:
    """Execute statements in an archive's database."""
    async with archive.database.engine.begin() as connection:
        for statement in statements:
            await connection.execute(text(statement))


async def identity(archive: Archive) -> str:
    """Return the identity of an archive."""
    return (await archive.state()).id


async def unavailable(archive: Archive) -> str:
    """Check that a read fails, and return the reason."""
    with pytest.raises(ArchiveUnavailable) as caught:
        async with asyncio.timeout(LONG_TIMEOUT):
            await archive.get_many([1])
    assert str(caught.value) == "Older posts cannot be read at the moment. Try again later."
    return caught.value.reason


async def eventually(call: Callable[[], Awaitable[T]]) -> T:
    """Repeat a call until the archive is available."""
    async with asyncio.timeout(LONG_TIMEOUT):
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
def test_a_url_may_name_its_driver(given: str, used: str) -> None:
    assert read_url(given).render_as_string(hide_password=False) == used


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "must begin with sqlite:///"),
        ("archive.sqlite", "must begin with sqlite:///"),
        ("http://u:secret@h/d", "must begin with sqlite:///"),
        ("postgresql+psycopg://u:secret@h/d", "must begin with sqlite:///"),
        ("sqlite://", "must name a file"),
        ("sqlite:///:memory:", "must name a file"),
        ("sqlite://secret/x", "must name a file"),
        ("sqlite:///x?mode=ro", "has an unknown option: mode"),
        ("postgresql://u:secret@h", "must name a database"),
        ("mysql://u:secret@h/", "must name a database"),
        ("postgres://u:secret@h:port/d", "must have the form postgres://"),
        ("postgresql://u:secret@h:70000/d", "must have a port from 1 to 65535"),
        ("mysql://u:secret@h/d?charset=latin1", "has an unknown option: charset; the supported options are ssl_ca"),
    ],
)
def test_an_invalid_url_is_refused_without_showing_its_password(url: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        Archive(url)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_processes_that_start_together_migrate_once(empty_database: str) -> None:
    """All processes read the same identity."""
    script = """
        import asyncio, os, sys
        import alembic.command
        from graph.archive.archive import Archive

        async def main(url):
            archive = Archive(url)
            await archive.migrate()
            os.write(1, f"{(await archive.state()).id}\\n".encode())  # one write, which no other process splits
            await archive.close()

        children, (gate, opener) = [], os.pipe()
        for _ in range(2):
            children.append(os.fork())
            if children[-1] == 0:
                os.close(opener)
                os.read(gate, 1)
                asyncio.run(main(sys.argv[1]))
                sys.exit()
        os.close(opener)
        assert not any([os.waitpid(child, 0)[1] for child in children])
    """
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(script), empty_database]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    identities = done.stdout.split()
    assert len(identities) == 2
    assert len(set(identities)) == 1
    assert done.stderr == ""


def differences(connection: Connection) -> Any:
    """Return the differences that Alembic finds between the database and the declarations."""
    options = {"version_table": VERSION_TABLE, "compare_type": True}
    return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)


async def test_the_migrations_create_the_declared_tables(
    empty_database: str, opened: Callable[..., Archive], caplog: pytest.LogCaptureFixture
) -> None:
    """The migrations create exactly the declared tables and log no warning."""
    archive = opened(empty_database)
    await archive.migrate()

    async with archive.database.engine.connect() as connection:
        assert await connection.run_sync(differences) == []
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_the_archives_of_tests_have_the_declared_tables(archive_url: str, opened: Callable[..., Archive]) -> None:
    """They are copies of an archive that the migrations created."""
    async with opened(archive_url).database.engine.connect() as connection:
        assert await connection.run_sync(differences) == []


async def test_an_interrupted_migration_is_continued(empty_database: str, opened: Callable[..., Archive]) -> None:
    """Existing tables and the identity stay if each step was committed separately."""
    archive = opened(empty_database)
    before = await identity(archive)
    of_table = " ON events" if archive.database.kind == "mysql" else ""
    await run(archive, "ALTER TABLE archive_state RENAME COLUMN quotes_upto TO watermark")
    await run(archive, "DELETE FROM fanline_schema", "DROP TABLE credentials", f"DROP INDEX events_by_pair{of_table}")

    again = opened(empty_database)
    await again.migrate()

    assert await identity(again) == before
    await append(again, post(1), credentials=[Credential(1, "bob", None, 1)])


async def test_an_archive_of_a_newer_version_is_refused(archive_url: str, opened: Callable[..., Archive]) -> None:
    """Every use raises SchemaTooNew, and nothing changes."""
    archive = opened(archive_url)
    await archive.migrate()
    await run(archive, "UPDATE fanline_schema SET version_num = '9999'")

    older = opened(archive_url)
    for use in (older.migrate, older.state, lambda: append(older, post(1))):
        with pytest.raises(SchemaTooNew, match=r"to revision 9999; this version supports revisions up to 0011\."):
            await use()
    await run(archive, "ALTER TABLE archive_state RENAME COLUMN quotes_upto TO watermark")
    await run(archive, "UPDATE fanline_schema SET version_num = '0001'")
    assert (await older.state()).watermark == 0


async def test_several_archives_migrate_in_one_process(tmp_path: Path, opened: Callable[..., Archive]) -> None:
    """The migrations run concurrently, each on the first use of its archive."""
    urls = [f"sqlite:///{tmp_path}/deep/er/{n}.sqlite" for n in range(4)]

    identities = await asyncio.gather(*(identity(opened(url)) for url in urls))

    assert len(set(identities)) == 4


async def test_a_cancelled_caller_leaves_a_complete_transaction(
    archive_url: str, opened: Callable[..., Archive]
) -> None:
    """The watermark always matches the last row, whenever the caller is cancelled. The archive stays usable."""
    archive = opened(archive_url)
    await append(archive)
    random = Random(3)  # noqa: S311 - delays, no secret
    for attempt in count():
        last = (await archive.state()).watermark
        if attempt >= 40 and last > 0:
            break
        caller = asyncio.create_task(append(archive, post(last + 1), followed(last + 2)))
        for _ in range(random.randrange(40)):
            await asyncio.sleep(0)
        await asyncio.sleep(random.random() * attempt / 5000)  # longer and longer, until some commit in time
        caller.cancel()
        await asyncio.wait({caller})
    await archive.close()

    archive = opened(archive_url)
    numbers = [row.number for row in await held(archive)]
    assert numbers == list(range(1, (await archive.state()).watermark + 1))
    assert len(numbers) >= last > 0


async def test_a_killed_server_is_unavailable_until_it_restarts(server: Server, opened: Callable[..., Archive]) -> None:
    """After the restart, the same archive works and holds everything that was committed."""
    archive = opened(server.database())
    await append(archive, post(5))
    running = [asyncio.create_task(append(archive, post(6), low=5)) for _ in range(8)]
    await asyncio.sleep(0.001)
    server.stop()

    for _ in range(3):
        assert await unavailable(archive)
    for outcome in await asyncio.gather(*running, return_exceptions=True):
        assert outcome is None or isinstance(outcome, (ArchiveUnavailable, ArchiveChanged))

    server.start()
    assert await archive.get_many([5]) == [Post(5, 1, "text")]
    await append(archive, post(7))
    assert (await archive.state()).watermark == 7


async def test_stale_connections_are_replaced_after_a_restart(server: Server, opened: Callable[..., Archive]) -> None:
    archive = opened(server.database())
    await asyncio.gather(*(archive.get_many([number]) for number in range(8)))
    server.stop()
    server.start()

    assert len(await asyncio.gather(*(archive.get_many([number]) for number in range(20)))) == 20


async def test_a_hanging_server_is_unavailable_within_the_timeout(
    server: Server, opened: Callable[..., Archive]
) -> None:
    """All callers fail in time, on old and on new connections. Afterwards the archive works again."""
    archive = opened(server.database(), timeout=SHORT_TIMEOUT)
    fresh = opened(server.database(), timeout=SHORT_TIMEOUT)
    await eventually(archive.state)
    with server.frozen():
        reasons = await asyncio.gather(*(unavailable(archive) for _ in range(20)), unavailable(fresh))
        assert all(reasons)
        await unavailable(archive)

    assert await eventually(fresh.state) != await eventually(archive.state)


async def test_an_archive_that_is_down_at_startup_is_migrated_later(
    server: Server, opened: Callable[..., Archive]
) -> None:
    """The first transaction that reaches the server runs the migrations. Concurrent transactions share the attempt."""
    archive = opened(server.database())
    server.stop()
    with pytest.raises(ArchiveUnavailable):
        await archive.migrate()
    await asyncio.gather(*(unavailable(archive) for _ in range(10)))

    server.start()
    assert len(set(await asyncio.gather(*(archive.state() for _ in range(10))))) == 1


async def test_wrong_credentials_are_an_outage_that_names_no_password(
    server: Server, opened: Callable[..., Archive], caplog: pytest.LogCaptureFixture
) -> None:
    """For the operator, the reason names the user, but not the password."""
    wrong = read_url(server.database()).set(username="nobody_here", password="s3cret" + PASSWORD)

    reason = await unavailable(opened(wrong.render_as_string(hide_password=False)))

    assert "nobody_here" in reason
    assert "s3cret" not in reason + caplog.text


async def test_an_invalid_row_is_not_an_outage(archive_url: str, opened: Callable[..., Archive]) -> None:
    """The database's error is raised, without the parameters of the statement."""
    archive = opened(archive_url)
    no_author: Any = None

    with pytest.raises(EventsRefused, match="actor") as caught:
        await append(archive, post(1, no_author, "private words"))

    assert "private words" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert (await archive.state()).watermark == 0


async def test_a_dropped_table_is_an_outage(archive_url: str, opened: Callable[..., Archive]) -> None:
    """The reason names the table. The table is not created again."""
    archive = opened(archive_url)
    await append(archive, post(1))
    await run(archive, "DROP TABLE events")

    assert "events" in await unavailable(archive)
    assert "events" in await unavailable(archive)


async def test_a_file_that_cannot_be_opened_is_unavailable(tmp_path: Path, opened: Callable[..., Archive]) -> None:
    """A folder, a file that is not a database, and a path below a file cannot be opened."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"no database at all" * 100)
    for path in ("folder", "file", "file/archive.sqlite"):
        archive = opened(f"sqlite:///{tmp_path}/{path}", timeout=TIMEOUT_SECONDS)
        for _ in range(3):
            assert await unavailable(archive)

    (tmp_path / "file").unlink()
    assert (await archive.state()).id


async def test_a_locked_file_is_unavailable_to_writers(tmp_path: Path, opened: Callable[..., Archive]) -> None:
    """Writers wait for a short lock, and fail after the timeout. Readers are not blocked."""
    patient, hasty = (
        opened(f"sqlite:///{tmp_path}/archive.sqlite", timeout=bound) for bound in (LONG_TIMEOUT, SHORT_TIMEOUT)
    )
    await append(patient, post(1))
    await eventually(hasty.state)
    with closing(sqlite3.connect(tmp_path / "archive.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ArchiveUnavailable):
            await append(hasty, post(2))
        assert await patient.post_ids(1, 0, 9) == {1}

        waiting = asyncio.create_task(append(patient, post(2)))
        await asyncio.sleep(0.1)
        other.execute("ROLLBACK")
        await waiting


async def test_a_new_file_is_used_once_another_process_has_written_to_it(
    tmp_path: Path, opened: Callable[..., Archive]
) -> None:
    """SQLite refuses at once to switch a file to WAL mode while another process writes to it in the old mode."""
    archive = opened(f"sqlite:///{tmp_path}/archive.sqlite", timeout=TIMEOUT_SECONDS)
    with closing(sqlite3.connect(tmp_path / "archive.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("CREATE TABLE own (x)")
        waiting = asyncio.create_task(archive.state())
        await asyncio.sleep(0.1)
        other.execute("COMMIT")
    assert (await waiting).id
