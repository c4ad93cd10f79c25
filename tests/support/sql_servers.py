"""Private SQL servers for tests: PostgreSQL and MariaDB, from the system's packages.

Each server runs once per process of the tests, in a temporary folder, on a Unix socket, without syncing to disk. Each
test gets an empty database, or an empty archive: a copy of one that the migrations have made, which is emptied between
tests. The servers refuse to run as root, so root starts them as the user of their package. Tests can kill, freeze and
restart a server.
"""

import asyncio
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import make_url

from graph.archive.archive import Archive
from graph.archive.migrations import VERSION_TABLE
from graph.archive.tables import metadata
from tests.conftest import need
from tests.support.stopped import stopped

PATIENCE = 120.0  # a busy machine starts a database slowly
PASSWORD = "p@ss:w/rd %41"
numbers = itertools.count(1)


def done(command: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **options)


def checked(process: subprocess.CompletedProcess[str]) -> str:
    """Return the output of a program that has succeeded."""
    assert process.returncode == 0, f"{process.args[0]}: {process.stdout}{process.stderr}"
    return process.stdout


class Server(ABC):
    """One private SQL server with its data in a temporary folder."""

    user: str

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fanline-"))
        self._as = self._unprivileged()
        if self._as:
            shutil.chown(self.folder, self._as["user"], self._as["group"])
        self._process: subprocess.Popen[bytes] | None = None
        self._archive: str | None = None
        self._schema = ""

    def _unprivileged(self) -> dict[str, Any]:
        if os.geteuid() != 0:
            return {}
        entry = next(entry for entry in pwd.getpwall() if entry.pw_name in (self.user, "nobody"))
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}

    def install(self, *command: str | Path) -> None:
        """Run the program that prepares the data of the server, as the server's user."""
        checked(done(command, cwd=self.folder, **self._as))

    def run(self, *command: str | Path) -> str:
        """Run a client of the server, and return its output. The client starts faster as the user of the tests."""
        return checked(done(command))

    @abstractmethod
    def command(self) -> Sequence[str | Path]:
        """Return the command that runs the server."""

    @abstractmethod
    def sql(self, statement: str) -> Sequence[str | Path]:
        """Return the command that executes a statement."""

    @abstractmethod
    def url(self, database: str) -> str:
        """Return the URL of a database."""

    def start(self) -> None:
        """Start the server unless it is running; return when it answers."""
        if self._process is not None:
            return
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._as,
            )
        deadline = time.monotonic() + PATIENCE
        while subprocess.run(self.sql("SELECT 1"), capture_output=True, check=False).returncode:
            assert self._process.poll() is None, (self.folder / "log").read_text("utf-8", "replace")
            assert time.monotonic() < deadline, f"{self.command()[0]} does not answer"
            time.sleep(0.02)

    def stop(self, how: int = signal.SIGKILL) -> None:
        """Kill the server. Committed data remain."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE)
            self._process = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop the server's processes: connections stay open, but the server does not answer."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        pids = [self._process.pid, *map(int, children.read_text().split())]
        with stopped(*pids):  # some may have served connections that have ended
            yield

    def database(self) -> str:
        """Create an empty database and return its URL."""
        name = f"test_{next(numbers)}"
        self.run(*self.sql(f"CREATE DATABASE {name}"))
        return self.url(name)

    @cached_property
    def _template(self) -> str:
        """The name of a database with an empty archive."""
        url = self.database()
        make_archive(url)
        return str(make_url(url).database)

    def archive(self) -> str:
        """Return the URL of an empty archive. It replaces the previous one, whose connections end.

        Both are the same database, because emptying tables is much faster than creating them. If the last test changed
        the tables, the archive is a new database.
        """
        if self._archive is None or done(self._empty(self._archive)).stdout != self._schema:
            self._archive = str(make_url(self.new_archive()).database)
            self._schema = self.run(*self._empty(self._archive))
        return self.url(self._archive)

    def new_archive(self) -> str:
        """Create a database with an empty archive and return its URL."""
        template, name = self._template, f"test_{next(numbers)}"
        self._copy(template, name)
        return self.url(name)

    def _empty(self, archive: str) -> Sequence[str | Path]:
        """Return the command that empties an archive and prints its schema. It fails if tables are missing."""
        file = self.folder / "empty.sql"
        if not file.exists():
            tables = [*metadata.tables, VERSION_TABLE]
            file.write_text("\n".join([*self.emptying(tables), self._rows(self._template)]))
        return self.script(archive, file)

    @abstractmethod
    def emptying(self, tables: Sequence[str]) -> Sequence[str]:
        """Return the statements that end all connections, list the schema and empty tables."""

    @abstractmethod
    def script(self, database: str, file: Path) -> Sequence[str | Path]:
        """Return the command that executes a file of statements in a database."""

    @abstractmethod
    def _rows(self, database: str) -> str:
        """Return the statements that insert the rows of a database."""

    @abstractmethod
    def _copy(self, database: str, name: str) -> None:
        """Create a database with this name as a copy of one that is not in use."""

    @abstractmethod
    def back_up(self, database: str, file: Path) -> None:
        """Write a consistent copy of a database into a file, while it is in use."""

    @abstractmethod
    def restore(self, database: str, file: Path) -> None:
        """Replace a database with its copy, while it is in use. Its connections end."""

    def close(self) -> None:
        """Kill the server and remove its data."""
        self.stop()
        shutil.rmtree(self.folder)


TRUNCATE_USED = "DO $$BEGIN IF EXISTS (SELECT FROM {0}) THEN TRUNCATE {0}; END IF; END$$;"
"""Truncate a table unless it is empty: truncating creates new files, even for an empty table."""


class PostgreSQL(Server):
    """A private PostgreSQL. `options` are settings of the server."""

    user = "postgres"
    options: Sequence[str] = ("fsync=off", "shared_buffers=32MB", "autovacuum=off")

    def __init__(self, binaries: Path) -> None:
        super().__init__()
        self._binaries = binaries
        self.install(
            *(binaries / "initdb", "-D", self.folder / "data", "-U", "fanline", "--auth=trust", "--no-sync"),
            *("--encoding=UTF8", "--locale=C"),
        )

    def command(self) -> Sequence[str | Path]:
        options = ("listen_addresses=", f"unix_socket_directories={self.folder}", *self.options)
        return (
            self._binaries / "postgres",
            *("-D", self.folder / "data"),
            *(word for option in options for word in ("-c", option)),
        )

    def sql(self, statement: str) -> Sequence[str | Path]:
        return (*self._client("postgres"), "-c", statement)

    def script(self, database: str, file: Path) -> Sequence[str | Path]:
        return (*self._client(database), "-f", file)

    def _client(self, database: str) -> Sequence[str | Path]:
        return (self._binaries / "psql", "-h", self.folder, "-U", "fanline", "-d", database, "-qXAt")

    def emptying(self, tables: Sequence[str]) -> Sequence[str]:
        return (
            "\\set ON_ERROR_STOP on",
            "SELECT count(CASE WHEN pid <> pg_backend_pid() THEN pg_terminate_backend(pid) END) < 0"
            " FROM pg_stat_activity WHERE datname = current_database();",
            "SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable) FROM information_schema.columns"
            " WHERE table_schema = 'public' ORDER BY 1;",
            "SELECT concat_ws(' ', conrelid::regclass, pg_get_constraintdef(oid)) FROM pg_constraint"
            " WHERE connamespace = 'public'::regnamespace ORDER BY 1;",
            "SELECT concat_ws(' ', tgrelid::regclass, tgname) FROM pg_trigger ORDER BY 1;",
            "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1;",
            *map(TRUNCATE_USED.format, tables),
        )

    def _rows(self, database: str) -> str:
        return self.run(
            self._binaries / "pg_dump", "-h", self.folder, "-U", "fanline", "--data-only", "--inserts", database
        )

    def url(self, database: str) -> str:
        return f"postgresql+asyncpg://fanline@/{database}?host={quote(str(self.folder))}"

    def _copy(self, database: str, name: str) -> None:
        self.run(*self.sql(f"CREATE DATABASE {name} TEMPLATE {database}"))

    def back_up(self, database: str, file: Path) -> None:
        self.run(self._binaries / "pg_dump", "-h", self.folder, "-U", "fanline", "-Fc", "-f", file, database)

    def restore(self, database: str, file: Path) -> None:
        self.run(*self.sql(f"DROP DATABASE {database} WITH (FORCE)"))
        self.run(*self.sql(f"CREATE DATABASE {database}"))
        self.run(self._binaries / "pg_restore", "-h", self.folder, "-U", "fanline", "-d", database, file)

    def stop(self, how: int = signal.SIGQUIT) -> None:
        """Kill the server and its child processes. The next start recovers."""
        super().stop(how)


STATISTICS = "--innodb-stats-auto-recalc=0"
"""Turn off statistics that the server collects in the background: they would change plans at any time."""


class MariaDB(Server):
    """A private MariaDB. `options` are arguments of the server."""

    user = "mysql"
    options: Sequence[str] = ("--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=32M", STATISTICS)

    def __init__(self, server: str, install: str, client: str) -> None:
        super().__init__()
        self._server, self._client = server, client
        self.install(install, *self._folders, "--auth-root-authentication-method=normal", "--skip-test-db")

    @property
    def _folders(self) -> Sequence[str]:
        """The options that name the folders. A server deletes the temporary tables of all servers in its `tmpdir`."""
        return ("--no-defaults", f"--datadir={self.folder / 'data'}", f"--tmpdir={self.folder}")

    def start(self) -> None:
        if self._process is not None:
            return
        super().start()
        self.run(*self.sql(f"CREATE USER IF NOT EXISTS fanline@localhost IDENTIFIED BY '{PASSWORD}'"))
        self.run(*self.sql("GRANT ALL ON *.* TO fanline@localhost"))

    def command(self) -> Sequence[str | Path]:
        return (
            *(self._server, *self._folders, f"--socket={self.folder / 'socket'}", "--skip-networking", *self.options),
            f"--pid-file={self.folder / 'pid'}",
        )

    def sql(self, statement: str) -> Sequence[str | Path]:
        return (*self._connect(self._client), "--batch", "--skip-column-names", "-e", statement)

    def script(self, database: str, file: Path) -> Sequence[str | Path]:
        return self.sql(f"USE {database};\nSOURCE {file}")

    def _connect(self, program: str) -> Sequence[str | Path]:
        return (program, "--no-defaults", f"--socket={self.folder / 'socket'}", "--user=root")

    def emptying(self, tables: Sequence[str]) -> Sequence[str]:
        return (
            "KILL USER fanline@localhost;",
            "SELECT table_name, column_name, column_type, is_nullable FROM information_schema.columns"
            " WHERE table_schema = DATABASE() ORDER BY table_name, column_name;",
            "SELECT table_name, index_name, seq_in_index, column_name FROM information_schema.statistics"
            " WHERE table_schema = DATABASE() ORDER BY table_name, index_name, seq_in_index;",
            "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = DATABASE();",
            "SELECT constraint_name FROM information_schema.check_constraints WHERE constraint_schema = DATABASE();",
            "DELIMITER //",
            *map("IF EXISTS (SELECT * FROM {0}) THEN TRUNCATE {0}; END IF//".format, tables),
            "DELIMITER ;",
        )

    def _rows(self, database: str) -> str:
        return self.run(*self._dump, "--no-create-info", database)

    @property
    def _dump(self) -> Sequence[str | Path]:
        return (*self._connect(str(Path(self._client).with_name("mariadb-dump"))), "--single-transaction")

    def _copy(self, database: str, name: str) -> None:
        file = self.folder / f"{database}.sql"
        if not file.exists():
            self.back_up(database, file)
        self.run(*self.sql(f"CREATE DATABASE {name};\nUSE {name};\nSOURCE {file}"))

    def back_up(self, database: str, file: Path) -> None:
        self.run(*self._dump, f"--result-file={file}", database)

    def restore(self, database: str, file: Path) -> None:
        self.run(*self.sql(f"DROP DATABASE {database};\nCREATE DATABASE {database};\nUSE {database};\nSOURCE {file}"))

    def url(self, database: str) -> str:
        socket = quote(str(self.folder / "socket"))
        return f"mysql+asyncmy://fanline:{quote(PASSWORD, safe='')}@localhost/{database}?unix_socket={socket}"


def make_postgresql(kind: type[PostgreSQL] = PostgreSQL) -> PostgreSQL:
    """Return a private PostgreSQL of the newest installed version."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    beside = shutil.which("initdb")
    need(bool(found or beside), "PostgreSQL: apt-get install postgresql")
    return kind((found[-1] if found else Path(str(beside)).resolve()).parent)


def make_mariadb(kind: type[MariaDB] = MariaDB) -> MariaDB:
    """Return a private MariaDB."""
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    programs = [shutil.which(name, path=path) for name in ("mariadbd", "mariadb-install-db", "mariadb")]
    need(all(programs), "MariaDB: apt-get install mariadb-server")
    return kind(*map(str, programs))


MAKERS: dict[str, Callable[[], Server]] = {"postgresql": make_postgresql, "mariadb": make_mariadb}


def make_archive(url: str) -> None:
    """Make an empty archive in an empty database."""

    async def migrate() -> None:
        archive = Archive(url, timeout=PATIENCE)
        await archive.migrate()
        await archive.close()

    in_thread(migrate())


def in_thread(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine for a fixture, which may run while an event loop runs."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()
