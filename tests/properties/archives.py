"""Archives on one SQLite database that all processes of a test share. Every statement is a step of the gate.

The statements are those of the archive. They run on SQLite's own driver, without threads, so that a test decides when
each one runs. Each transaction has its own connection: it sees its own snapshot, and only one transaction at a time can
write.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from sqlalchemy import (
    Connection,
    CursorResult,
    Delete,
    Insert,
    Select,
    Table,
    create_engine,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive.archive import Archive
from graph.archive.rows import EventRow
from graph.archive.tables import STATE, metadata
from graph.errors import ArchiveUnavailable
from tests.properties.gate import Gate, Outage
from tests.properties.journal import Journal
from tests.support.graphs import STORE_ID, bound_archive

T = TypeVar("T")

TABLES = tuple(metadata.tables.values())


class Step(Protocol):
    """Waits for the turn of a statement."""

    def __call__(self, connection: Connection, *, writes: bool) -> AbstractAsyncContextManager[None]: ...


class Statements:
    """The part of SQLAlchemy's AsyncConnection that the archive uses, one step for each statement."""

    def __init__(self, connection: Connection, step: Step) -> None:
        self._connection = connection
        self._step = step
        self.dialect = connection.dialect
        self.wrote = False

    async def execute(self, statement: Any, parameters: Any = None) -> CursorResult[Any]:
        self.wrote = self.wrote or statement.is_dml
        async with self._step(self._connection, writes=statement.is_dml):
            return self._connection.execute(statement, parameters)

    async def exec_driver_sql(self, statement: str, parameters: Any = None) -> CursorResult[Any]:
        self.wrote = True
        async with self._step(self._connection, writes=True):
            return self._connection.exec_driver_sql(statement, parameters)

    async def scalars(self, statement: Any, parameters: Any = None) -> Any:
        return (await self.execute(statement, parameters)).scalars()


class Database:
    """One SQLite database, and the id of the archive in it.

    Connections stay open, and each one serves one transaction at a time. They begin and end transactions without
    SQLAlchemy, which needs more time for that than for the statements between.
    """

    def __init__(self, file: Path) -> None:
        empty_archive, self.archive_id = bound_archive()
        file.write_bytes(empty_archive)
        self._engine = create_engine(f"sqlite:///{file}", connect_args={"timeout": 0, "isolation_level": None})
        self._engine = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        self._idle: list[Connection] = []
        self._own = self._connect()

    def _connect(self) -> Connection:
        connection = self._engine.connect()
        driver = driver_of(connection)
        for pragma in ("journal_mode=WAL", "synchronous=OFF"):
            driver.execute(f"PRAGMA {pragma}").close()
        return connection

    def begin(self) -> Connection:
        """Begin a transaction, and return its connection."""
        connection = self._idle.pop() if self._idle else self._connect()
        driver_of(connection).execute("BEGIN").close()
        return connection

    def commit(self, connection: Connection) -> None:
        """Commit a transaction."""
        driver_of(connection).execute("COMMIT").close()

    def end(self, connection: Connection) -> None:
        """Roll back what a transaction has not committed, and keep its connection for another one."""
        driver = driver_of(connection)
        if driver.in_transaction:
            driver.execute("ROLLBACK").close()
        self._idle.append(connection)

    def rows(self, table: Table) -> list[tuple[Any, ...]]:
        """Return all rows of a table."""
        found: list[tuple[Any, ...]] = driver_of(self._own).execute(query_of(table)).fetchall()
        return found

    @property
    def watermark(self) -> int:
        """The archive watermark."""
        return watermark_of(self.rows(STATE))

    def empty(self) -> None:
        """Return the archive to its unused state."""
        driver = driver_of(self._own)
        driver.execute("BEGIN").close()
        for table in TABLES:
            if table is not STATE:
                driver.execute(text_of(delete(table))).close()
        self._own.execute(update(STATE).values(watermark=0, note=None, store=STORE_ID))
        driver.execute("COMMIT").close()

    def back_up(self) -> "Backup":
        """Return all rows of the archive."""
        return [(table, self.rows(table)) for table in TABLES]

    def restore(self, backup: "Backup") -> None:
        """Replace all rows of the archive with those of a backup."""
        driver = driver_of(self._own)
        driver.execute("BEGIN").close()
        for table, rows in backup:
            driver.execute(text_of(delete(table))).close()
            driver.executemany(text_of(insert(table)), rows).close()
        driver.execute("COMMIT").close()

    def close(self) -> None:
        """Close all connections."""
        for connection in (self._own, *self._idle):
            connection.close()
        self._engine.dispose()


def driver_of(connection: Connection) -> Any:
    """Return the SQLite connection that underlies a connection."""
    return connection.connection.dbapi_connection


@cache
def query_of(table: Table) -> str:
    """Return the query of all rows of a table."""
    return text_of(select(table))


def text_of(statement: Select[Any] | Insert | Delete) -> str:
    """Return the SQL text of a statement on all columns of a table, in their order."""
    return str(statement.compile(dialect=sqlite.dialect()))


class DirectArchive(Archive):
    """An archive whose statements run at once."""

    def __init__(self, database: Database, journal: Journal) -> None:
        self._database = database
        self._journal = journal

    async def insert(self, rows: Sequence[EventRow], *, store: str) -> None:
        self._journal.late.update(row.number for row in rows)
        await super().insert(rows, store=store)

    async def _transaction(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        connection = self._database.begin()
        try:
            statements = Statements(connection, self._step)
            result = await work(cast(AsyncConnection, statements))
            if statements.wrote:
                async with self._step(connection, writes=True):
                    self._database.commit(connection)
            return result
        finally:
            self._database.end(connection)
            self._end(connection)

    @asynccontextmanager
    async def _step(self, connection: Connection, *, writes: bool) -> AsyncIterator[None]:
        yield

    def _end(self, connection: Connection) -> None:
        """Note that the transaction of a connection has ended."""

    async def close(self) -> None:
        """Keep the database open for the other processes."""


class GatedArchive(DirectArchive):
    """The archive of one process, behind the gate."""

    def __init__(self, database: Database, journal: Journal, gate: Gate, process: str) -> None:
        super().__init__(database, journal)
        self._gate = gate
        self._process = process

    @asynccontextmanager
    async def _step(self, connection: Connection, *, writes: bool) -> AsyncIterator[None]:
        async with self._gate.turn(self._process, connection if writes else None) as turn:
            outage = turn.outage or self._gate.next_outage(self._process)
            if outage is Outage.BEFORE:
                raise ArchiveUnavailable("an outage injected by the test")
            if writes:
                self._gate.writer = connection
            yield
            if outage is Outage.AFTER:
                raise ArchiveUnavailable("an outage injected by the test")

    def _end(self, connection: Connection) -> None:
        if self._gate.writer is connection:
            self._gate.writer = None


Backup = list[tuple[Table, list[tuple[Any, ...]]]]
"""The rows of each table."""


def watermark_in(backup: Backup) -> int:
    """Return the archive watermark in a backup."""
    return next(watermark_of(rows) for table, rows in backup if table is STATE)


def watermark_of(rows: Sequence[tuple[Any, ...]]) -> int:
    """Return the archive watermark in the rows of the table `STATE`."""
    return int(rows[0][STATE.c.keys().index("watermark")])
