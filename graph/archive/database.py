"""The connection to the SQL database of the archive: its URL, bounded transactions, and the migrations.

SQLite, PostgreSQL and MySQL or MariaDB. Every transaction runs in a task of its own, so that a caller that is
cancelled leaves no connection half used, and ends in bounded time, so that no caller hangs with the database.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, NullPool, event, make_url
from sqlalchemy import exc as failures
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from graph.archive import migrations
from graph.archive.migrations import SchemaOutdated, SchemaState
from graph.errors import ArchiveUnavailable
from graph.tasks import end

T = TypeVar("T")

SECONDS = 5.0
POOL_SIZE = 8
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
OUTAGES = (failures.OperationalError, failures.InterfaceError, failures.InternalError, failures.TimeoutError, OSError)
OUTAGE_STATES = ("08", "25006", "28", "3D", "40", "53", "55", "57", "58", "XX")  # PostgreSQL's classes of errors


def read_url(text: str) -> URL:
    """Read an archive's URL. Raises ValueError with a sentence, which never shows the URL, if it names none."""
    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in DRIVERS:
        raise ValueError(
            "must begin with sqlite:///, postgresql:// or mysql://, like sqlite:////var/lib/archive.sqlite"
        )
    try:
        url = make_url(f"{DRIVERS[scheme]}://{rest}")
    except (failures.ArgumentError, ValueError):
        raise ValueError(f"is not a URL like {scheme}://user:password@host:port/database") from None
    if url.port is not None and not 0 < url.port < 65536:
        raise ValueError("must have a port from 1 to 65535, or none")
    kind = url.get_backend_name()
    if kind == "sqlite" and (url.host or not url.database or re.match(":memory:|file:", url.database)):
        raise ValueError(
            "must name a file, after three slashes if relative and four if absolute: sqlite:////folder/file"
        )
    if not url.database:
        raise ValueError("must name a database after the host, like postgresql://user:password@host/fanline")
    if unknown := sorted(set(url.query) - OPTIONS[kind]):
        known = f"; known are {', '.join(sorted(OPTIONS[kind]))}" if OPTIONS[kind] else ""
        raise ValueError(f"has the unknown option {unknown[0]}{known}")
    if mode := url.query.get("sslmode"):
        url = url.difference_update_query(["sslmode"]).update_query_dict({"ssl": mode})
    return url


def make_engine(url: URL, seconds: float, statement: float, **pool: Any) -> AsyncEngine:
    """Make an engine without connecting yet: `seconds` to connect, `statement` seconds for each statement."""
    kind = url.get_backend_name()
    milliseconds = str(int(statement * 1000))
    options: dict[str, dict[str, Any]] = {
        "sqlite": {"timeout": statement, "isolation_level": None},
        "postgresql": {
            "timeout": seconds,
            "command_timeout": statement,
            "server_settings": {
                "application_name": "fanline",
                "statement_timeout": milliseconds,
                "plan_cache_mode": "force_custom_plan",
                "jit": "off",
            },
        },
        "mysql": {
            "connect_timeout": seconds,
            "read_timeout": statement,
            "charset": "utf8mb4",
            "init_command": "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
        },
    }
    engine = create_async_engine(url, connect_args=options[kind], hide_parameters=True, **pool)
    if kind == "sqlite":
        event.listen(engine.sync_engine, "begin", _begin)
    return engine


def _begin(connection: Connection) -> None:
    """Begin a transaction of SQLite, which Python's driver would begin too late, durable as soon as committed."""
    if "durable" not in connection.info:
        connection.exec_driver_sql("PRAGMA journal_mode = WAL")
        connection.exec_driver_sql("PRAGMA synchronous = FULL")
        connection.info["durable"] = True
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("exclusive") else "BEGIN")


class Database:
    """One database and its pool of connections. Nothing connects before the first use.

    `seconds` bounds connecting, each statement and each whole transaction. Raises ValueError like `read_url`.
    """

    def __init__(self, url: str, seconds: float = SECONDS, *, migrates: bool = True) -> None:
        self.url = read_url(url)
        self.migrates = migrates
        self.kind = self.url.get_backend_name()
        self.seconds = seconds
        self.engine = make_engine(
            self.url,
            seconds,
            seconds,
            pool_size=POOL_SIZE,
            max_overflow=0,
            pool_timeout=seconds,
            pool_pre_ping=self.kind != "sqlite",
        )
        self._migrated = False
        self._migration: asyncio.Task[None] | None = None
        self._under_way: set[asyncio.Task[Any]] = set()

    async def transaction(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Do some work in a transaction of its own and commit it; migrate first if nobody has.

        Raises ArchiveUnavailable if the database does not answer in time: then the work may or may not have been
        committed. A caller that is cancelled goes at once; the transaction goes on without it.
        """
        return await self._bounded(self._transact(work))

    async def _bounded(self, work: Coroutine[Any, Any, T]) -> T:
        task = self._start(work)
        watchdog = asyncio.get_running_loop().call_later(self.seconds, task.cancel)
        task.add_done_callback(lambda _: watchdog.cancel())
        done, _ = await asyncio.wait({task}, timeout=self.seconds)
        if not done or task.cancelled():
            raise ArchiveUnavailable(f"no answer within {self.seconds:g} seconds")
        return task.result()

    async def _transact(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        await self.migrate()
        return await self._within(self.engine, work)

    async def _within(self, engine: AsyncEngine, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Do some work in a transaction of this engine; turn what means an outage into ArchiveUnavailable."""
        connected = False
        try:
            async with engine.connect() as connection:
                connected = True
                async with connection.begin():
                    return await work(connection)
        except Exception as error:
            if connected and not is_outage(error):
                raise
            raise ArchiveUnavailable(_reason(error)) from None

    def _start(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = asyncio.get_running_loop().create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._finish)
        return task

    def _finish(self, task: "asyncio.Task[Any]") -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # its caller may be gone

    async def migrate(self) -> None:
        """Bring the schema up to date, once. Callers share one attempt, and processes take turns.

        Raises ArchiveUnavailable, SchemaTooNew, and SchemaOutdated if this database `migrates` nothing.
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
        """Return the state of the schema, without creating anything. Raises ArchiveUnavailable and SchemaTooNew."""
        if self.kind == "sqlite" and not await asyncio.to_thread(Path(str(self.url.database)).is_file):
            return SchemaState.ABSENT
        return await self._bounded(self._within(self.engine, lambda connection: connection.run_sync(migrations.state)))

    async def _migrate(self) -> None:
        if await self.schema_state() is not SchemaState.CURRENT:
            if not self.migrates:
                raise SchemaOutdated
            await self._upgrade()
        self._migrated = True

    async def _upgrade(self) -> None:
        if self.kind == "sqlite":
            try:
                await asyncio.to_thread(Path(str(self.url.database)).parent.mkdir, 0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise ArchiveUnavailable(_reason(error)) from None
        engine = make_engine(self.url, self.seconds, migrations.SECONDS, poolclass=NullPool)
        try:
            await self._within(engine.execution_options(exclusive=True), migrations.upgrade)
        finally:
            await engine.dispose()

    async def close(self) -> None:
        """End what is under way and close all connections."""
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=self.seconds)
        await end(list(self._under_way))
        await self.engine.dispose()


def is_outage(error: Exception) -> bool:
    """Tell an error that means the database cannot do its work now from one that means a mistake of ours."""
    if isinstance(error, OUTAGES):
        return True
    if isinstance(error, failures.DBAPIError):
        state = str(getattr(error.orig, "sqlstate", None) or "")
        return error.connection_invalidated or type(error) is failures.DatabaseError or state.startswith(OUTAGE_STATES)
    return False


def _reason(error: Exception) -> str:
    """Say in a line what happened, without the statement and its parameters."""
    cause = error.orig if isinstance(error, failures.DBAPIError) and error.orig is not None else error
    return f"{type(cause).__name__}: {' '.join(str(cause).split())}"
