"""Archives on one SQLite database that all processes of a test share. Every statement is a step of the gate.

The statements are those of the archive. They run on SQLite's own driver, without threads, so that a test decides when
each of them runs. Each process has its own connections: a transaction sees its snapshot, and one at a time can write.
"""

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from sqlalchemy import Connection, CursorResult, Engine, create_engine, delete, event, insert, select, update
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


class DirectArchive(Archive):
    """An archive whose statements run at once."""

    def __init__(self, engine: Engine, journal: Journal) -> None:
        self._engine = engine
        self._journal = journal

    async def insert(self, rows: Sequence[EventRow], *, store: str) -> None:
        self._journal.late.update(row.number for row in rows)
        await super().insert(rows, store=store)

    async def _transaction(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        connection = self._engine.connect()
        transaction = connection.begin()
        try:
            statements = Statements(connection, self._step)
            result = await work(cast(AsyncConnection, statements))
            if statements.wrote:
                async with self._step(connection, writes=True):
                    transaction.commit()
            return result
        finally:
            if transaction.is_active:
                transaction.rollback()
            self._end(connection)
            connection.close()

    @asynccontextmanager
    async def _step(self, connection: Connection, *, writes: bool) -> AsyncIterator[None]:
        yield

    def _end(self, connection: Connection) -> None:
        """Note that the transaction of a connection has ended."""

    async def close(self) -> None:
        """Keep the database open for the other processes."""


class GatedArchive(DirectArchive):
    """The archive of one process, behind the gate."""

    def __init__(self, engine: Engine, journal: Journal, gate: Gate, process: str) -> None:
        super().__init__(engine, journal)
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


def open_database(file: Path) -> tuple[Engine, str]:
    """Return an engine on a new archive bound to `STORE_ID`, and the id of the archive."""
    template, archive_id = bound_archive()
    shutil.copy(template, file)
    engine = create_engine(
        f"sqlite:///{file}", connect_args={"timeout": 0, "isolation_level": None}, pool_size=20, max_overflow=-1
    )
    event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA journal_mode=WAL").close())
    event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous=OFF").close())
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    return engine, archive_id


def empty(engine: Engine) -> None:
    """Make the archive unused."""
    with engine.begin() as connection:
        for table in TABLES:
            if table is not STATE:
                connection.execute(delete(table))
        connection.execute(update(STATE).values(watermark=0, note=None, store=STORE_ID))


Backup = list[tuple[Any, list[dict[str, Any]]]]
"""The rows of each table."""


def back_up(engine: Engine) -> Backup:
    """Return all rows of the archive."""
    with engine.connect() as connection:
        found = [(table, list(connection.execute(select(table)))) for table in TABLES]
    return [(table, [{each.key: row._mapping[each] for each in table.c} for row in rows]) for table, rows in found]


def restore(engine: Engine, backup: Backup) -> None:
    """Replace all rows of the archive by those of a backup."""
    with engine.begin() as connection:
        for table, rows in backup:
            connection.execute(delete(table))
            if rows:
                connection.execute(insert(table), rows)


def watermark_of(backup: Backup) -> int:
    """Return the archive watermark in a backup."""
    return int(next(rows[0]["watermark"] for table, rows in backup if table is STATE))


def rows_of(engine: Engine, table: Any) -> list[Any]:
    """Return all rows of a table."""
    with engine.connect() as connection:
        return list(connection.execute(select(table)))
