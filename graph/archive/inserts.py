"""Inserts rows into tables of the archive, and distinguishes refused values from outages."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from sqlalchemy import Dialect, Table, insert
from sqlalchemy.exc import ProgrammingError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive import postgresql
from graph.archive.database import is_outage, reason_of
from graph.archive.rows import EventsRefused


async def add_rows(
    connection: AsyncConnection, table: Table, names: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert rows with these columns. One statement, or none if there are no rows. Raises EventsRefused."""
    if not rows:
        return
    with refusals():
        if connection.dialect.name == "postgresql":
            columns = zip(*rows, strict=True)
            await connection.execute(postgresql.insert_arrays(table, names), dict(zip(names, columns, strict=True)))
        else:
            statement, order = insert_statement(connection.dialect, table, names)
            await connection.exec_driver_sql(statement, [tuple(row[place] for place in order) for row in rows])


@lru_cache(maxsize=16)
def insert_statement(dialect: Dialect, table: Table, names: tuple[str, ...]) -> tuple[str, tuple[int, ...]]:
    """Return the statement that inserts a row, and the index in `names` of each parameter, for SQLite and MySQL.

    The values go to the driver unchanged: having SQLAlchemy bind each value would take twice as long as the insert.
    """
    compiled = insert(table).compile(dialect=dialect, column_keys=list(names))
    return str(compiled), tuple(names.index(name) for name in compiled.positiontup or ())


@contextmanager
def refusals() -> Iterator[None]:
    """Turn errors that the values cause into EventsRefused, but not errors due to an outage or damaged schema."""
    try:
        yield
    except (SQLAlchemyError, ArithmeticError, TypeError, ValueError) as error:
        if isinstance(error, ProgrammingError) or is_outage(error):
            raise
        raise EventsRefused(reason_of(error)) from None
