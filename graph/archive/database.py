"""The SQL database of the archive: its URL, transactions with a timeout, and the upgrade of its schema.

Supports SQLite, PostgreSQL, MySQL and MariaDB. Every transaction runs in its own task: a cancelled caller cannot leave
a connection in the middle of a statement, and a database that hangs cannot hang its callers. A gate decides which
transaction runs next, so the pool always has a connection for a transaction that passes the gate.
"""

import asyncio
import re
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, NullPool, event, exc, make_url
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from graph.archive import migrations
from graph.archive.gate import Gate
from graph.archive.migrations import SchemaOutdated, SchemaState
from graph.archive.sqlite_file import SqliteFile
from graph.archive.usage import USAGE, count_statement
from graph.errors import ArchiveUnavailable
from graph.recording import RECORDING
from graph.tasks import end

T = TypeVar("T")

TIMEOUT_SECONDS = 5.0
POOL_SIZE = 8
SWITCH_PAUSES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "sqlite+aiosqlite": "sqlite+aiosqlite",
    "postgres": "postgresql+asyncpg",
    "postgresql": "postgresql+asyncpg",
    "postgresql+asyncpg": "postgresql+asyncpg",
    "mysql": "mysql+asyncmy",
    "mariadb": "mysql+asyncmy",
    "mysql+asyncmy": "mysql+asyncmy",
    "mariadb+asyncmy": "mysql+asyncmy",
}
OPTIONS = {
    "sqlite": frozenset[str](),
    "postgresql": frozenset({"host", "port", "ssl", "sslmode"}),
    "mysql": frozenset({"unix_socket", "ssl_ca", "ssl_capath", "ssl_cert", "ssl_key", "ssl_check_hostname"}),
}
OUTAGES = (exc.OperationalError, exc.InterfaceError, exc.InternalError, exc.TimeoutError, OSError)
REFUSED = ((1644,), (3819,), (4025,))
"""Error numbers of MySQL and MariaDB for rows that a trigger or CHECK refuses. The driver raises them like outages."""
OUTAGE_STATES = ("08", "25006", "28", "3D", "40", "42P01", "53", "55", "57", "58", "XX")
"""Prefixes of the PostgreSQL SQLSTATE codes that indicate an outage. 42P01 means that a table is gone."""
NO_TABLE = 1146
"""The error number of MySQL and MariaDB for a table that is gone."""


def read_url(text: str) -> URL:
    """Return the parsed URL of an archive. Raises ValueError if it is not valid; the message never contains the URL."""
    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in DRIVERS:
        raise ValueError(
            "must begin with sqlite:///, postgresql:// or mysql://, for example sqlite:////var/lib/archive.sqlite"
        )
    try:
        url = make_url(f"{DRIVERS[scheme]}://{rest}")
    except (exc.ArgumentError, ValueError):
        raise ValueError(f"must have the form {scheme}://user:password@host:port/database") from None
    if url.port is not None and not 0 < url.port < 65536:
        raise ValueError("must have a port from 1 to 65535, or none")
    kind = url.get_backend_name()
    if kind == "sqlite" and (url.host or not url.database or re.match(":memory:|file:", url.database)):
        raise ValueError(
            "must name a file, after three slashes for a relative path or four for an absolute path, for example "
            "sqlite:////folder/file"
        )
    if not url.database:
        raise ValueError("must name a database after the host, for example postgresql://user:password@host/fanline")
    if unknown := sorted(set(url.query) - OPTIONS[kind]):
        names = ", ".join(sorted(OPTIONS[kind]))
        known = f"the supported options are {names}" if names else "no options are supported"
        raise ValueError(f"has an unknown option: {unknown[0]}; {known}")
    if mode := url.query.get("sslmode"):
        url = url.difference_update_query(["sslmode"]).update_query_dict({"ssl": mode})
    return url


def make_engine(url: URL, connect_timeout: float, statement_timeout: float, **pool: Any) -> AsyncEngine:
    """Return an engine with these timeouts, in seconds. The engine connects on first use."""
    kind = url.get_backend_name()
    milliseconds = str(int(statement_timeout * 1000))
    options: dict[str, dict[str, Any]] = {
        "sqlite": {"timeout": statement_timeout, "isolation_level": None},
        "postgresql": {
            "timeout": connect_timeout,
            "command_timeout": statement_timeout,
            "server_settings": {
                "application_name": "fanline",
                "statement_timeout": milliseconds,
                "plan_cache_mode": "force_custom_plan",
                "jit": "off",
                "enable_bitmapscan": "off",  # a bitmap scan would read and sort all posts of an author for each page
                "enable_seqscan": "off",
            },
        },
        "mysql": {
            "connect_timeout": connect_timeout,
            "read_timeout": statement_timeout,
            "charset": "utf8mb4",
            "init_command": "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
        },
    }
    engine = create_async_engine(url, connect_args=options[kind], hide_parameters=True, **pool)
    if kind == "sqlite":
        event.listen(engine.sync_engine, "begin", _begin_sqlite)
    return engine


def _begin_sqlite(connection: Connection) -> None:
    """Begin a durable SQLite transaction. Python's driver would begin it only at the first write."""
    if "durable" not in connection.info:
        _switch_to_wal(connection)
        connection.exec_driver_sql("PRAGMA synchronous = FULL")
        connection.info["durable"] = True
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("exclusive") else "BEGIN")


def _switch_to_wal(connection: Connection) -> None:
    """Switch a file to WAL mode. Retry, because SQLite does not wait for other processes that are also switching it."""
    for pause in (*SWITCH_PAUSES, None):
        try:
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
            return
        except exc.OperationalError as error:
            if pause is None or getattr(error.orig, "sqlite_errorcode", None) != sqlite3.SQLITE_BUSY:
                raise
        driver: Any = connection.connection.dbapi_connection
        driver.run_async(lambda _, seconds=pause: asyncio.sleep(seconds))


class Database:
    """One database and its connection pool. Connects on first use.

    `timeout`, in seconds, limits each of these: the wait for a connection, connecting, a statement, and a transaction.
    Raises ValueError like `read_url`.
    """

    def __init__(self, url: str, timeout: float = TIMEOUT_SECONDS, *, migrates: bool = True) -> None:
        self.url = read_url(url)
        self.migrates = migrates
        self.kind = self.url.get_backend_name()
        self.timeout = timeout
        self.engine = make_engine(
            self.url,
            timeout,
            timeout,
            pool_size=POOL_SIZE,
            max_overflow=0,
            pool_timeout=timeout,
            pool_pre_ping=self.kind != "sqlite",
        )
        event.listen(self.engine.sync_engine, "before_cursor_execute", count_statement)
        self.gate = Gate(POOL_SIZE)
        self._file = SqliteFile(Path(str(self.url.database))) if self.kind == "sqlite" else None
        self._was_migrated = False
        self._migrated = False
        self._migration: asyncio.Task[None] | None = None
        self._running: set[asyncio.Task[Any]] = set()

    async def transaction(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Run `work` in its own transaction, commit it, and return its result.

        First wait at the gate for a connection, and upgrade the schema if needed. Raises ArchiveUnavailable if there is
        no connection for this caller, or if the database does not answer in time, in which case the work may still have
        been committed. If the caller is cancelled, the transaction continues and keeps its connection.
        """
        leave = await self.gate.enter(self.timeout)
        usage = USAGE.get()
        if usage is not None:
            usage.begin_transaction()
        task = self._start(self._transact(work))
        task.add_done_callback(lambda _: leave())
        if usage is not None:
            task.add_done_callback(lambda _: usage.end_transaction())
        return await self._in_time(task)

    async def _in_time(self, task: "asyncio.Task[T]") -> T:
        """Return the result of a task. Raises ArchiveUnavailable if it takes longer than the timeout."""
        watchdog = asyncio.get_running_loop().call_later(self.timeout, task.cancel)
        task.add_done_callback(lambda _: watchdog.cancel())
        done, _ = await asyncio.wait({task}, timeout=self.timeout)
        if not done or task.cancelled():
            raise ArchiveUnavailable(f"no answer within {self.timeout:g} seconds")
        return task.result()

    async def _transact(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        await self._check_file()
        await self.migrate()
        return await self._in_transaction(self.engine, work)

    async def _check_file(self) -> None:
        """Close all connections and raise ArchiveUnavailable if the SQLite file was deleted, replaced or truncated.

        The next call opens the file again.
        """
        if self._migrated and self._file is not None and (problem := self._file.problem()) is not None:
            self._migrated = False
            await self.engine.dispose()
            raise ArchiveUnavailable(problem)

    async def _in_transaction(self, engine: AsyncEngine, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Run `work` in a transaction of this engine. Raises ArchiveUnavailable for errors that mean an outage."""
        connected = False
        recording = RECORDING.get()
        transaction = recording.transaction() if recording is not None else None
        try:
            async with engine.connect() as connection:
                connected = True
                async with connection.begin():
                    if transaction is not None:
                        event.listen(connection.sync_connection, "before_cursor_execute", transaction.count)
                    return await work(connection)
        except Exception as error:
            if connected and not is_outage(error):
                raise
            raise ArchiveUnavailable(reason_of(error)) from None
        finally:
            if transaction is not None:
                transaction.end()

    def _start(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._finish)
        return task

    def _finish(self, task: "asyncio.Task[Any]") -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # mark as retrieved: the caller may have been cancelled

    async def migrate(self) -> None:
        """Upgrade the schema to the current revision, once. Concurrent callers share one attempt.

        Raises ArchiveUnavailable, SchemaTooNew, and SchemaOutdated if the schema is outdated and `migrates` is False.
        """
        if self._migrated:
            return
        if self._migration is None:
            self._migration = self._start(self._migrate())
            self._migration.add_done_callback(self._end_attempt)
        await asyncio.shield(self._migration)

    def _end_attempt(self, task: "asyncio.Task[None]") -> None:
        self._migration = None

    async def schema_state(self) -> SchemaState:
        """Return the state of the schema without creating it. Raises ArchiveUnavailable and SchemaTooNew."""
        if self.kind == "sqlite" and not await asyncio.to_thread(Path(str(self.url.database)).is_file):
            return SchemaState.ABSENT
        read = self._in_transaction(self.engine, lambda connection: connection.run_sync(migrations.state))
        return await self._in_time(self._start(read))

    async def _migrate(self) -> None:
        try:
            await self._open()
        except ArchiveUnavailable:
            if self._file is not None:
                await self.engine.dispose()  # the next attempt must open the file again: it may have been replaced
            raise

    async def _open(self) -> None:
        if (state := await self.schema_state()) is not SchemaState.CURRENT:
            if self._was_migrated and state is SchemaState.ABSENT:
                problem = None if self._file is None else self._file.problem()
                raise ArchiveUnavailable(problem or "its tables are gone. Restore a backup")
            if not self.migrates:
                raise SchemaOutdated
            await self._upgrade()
        if self._file is not None:
            try:
                self._file.remember()
            except OSError as error:
                raise ArchiveUnavailable(reason_of(error)) from None
        self._migrated = self._was_migrated = True

    async def _upgrade(self) -> None:
        if self.kind == "sqlite":
            try:
                await asyncio.to_thread(Path(str(self.url.database)).parent.mkdir, 0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise ArchiveUnavailable(reason_of(error)) from None
        engine = make_engine(self.url, self.timeout, migrations.TIMEOUT_SECONDS, poolclass=NullPool)
        try:
            await self._in_transaction(engine.execution_options(exclusive=True), migrations.upgrade)
        finally:
            await engine.dispose()

    async def close(self) -> None:
        """Wait for running transactions, cancel those that exceed the timeout, and close all connections."""
        if self._running:
            await asyncio.wait(self._running, timeout=self.timeout)
        await end(list(self._running))
        await self.engine.dispose()


def is_outage(error: Exception) -> bool:
    """Return True if an error indicates an outage of the database rather than a bug in this program."""
    if isinstance(error, exc.DBAPIError) and error.orig is not None and error.orig.args[:1] in REFUSED:
        return False
    if isinstance(error, OUTAGES):
        return True
    if isinstance(error, exc.ProgrammingError) and error.orig is not None and error.orig.args[:1] == (NO_TABLE,):
        return True
    if isinstance(error, exc.DBAPIError):
        state = str(getattr(error.orig, "sqlstate", None) or "")
        return error.connection_invalidated or type(error) is exc.DatabaseError or state.startswith(OUTAGE_STATES)
    return False


def reason_of(error: Exception) -> str:
    """Return the error's type and message, without the statement, its parameters, and the values of rows."""
    cause = error.orig if isinstance(error, exc.DBAPIError) and error.orig is not None else error
    message = str(cause).partition("\nDETAIL:")[0]
    return f"{type(cause).__name__}: {' '.join(message.split())}"
