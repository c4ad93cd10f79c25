"""The archive's schema: one migration per file in `versions`, and the functions that check and upgrade the schema.

Each process holds a database lock while it upgrades, so processes that start together upgrade one after another.
Alembic is imported only for upgrades, because the import takes longer than reading the revision, which every process
does.
"""

import asyncio
import hashlib
import pkgutil
import threading
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, Connection, MetaData, String, Table, func, inspect, select
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.errors import GraphError

if TYPE_CHECKING:
    from alembic.config import Config

VERSION_TABLE = "fanline_schema"
VERSIONS = Table(VERSION_TABLE, MetaData(), Column("version_num", String(32), primary_key=True))
TIMEOUT_SECONDS = 60.0
RETRY_SECONDS = 0.05

_running = threading.Lock()  # Alembic keeps the running migration in module globals


class SchemaState(Enum):
    """How the schema of a database compares with the schema of this version of Fanline."""

    ABSENT = "absent"
    OUTDATED = "outdated"
    CURRENT = "current"


class SchemaMismatch(GraphError):
    """The archive's schema does not match this version of Fanline."""


class SchemaTooNew(SchemaMismatch):
    """A newer version of Fanline has upgraded the archive's schema, so this version must not use it."""

    def __init__(self, found: str, known: str) -> None:
        super().__init__(
            f"A newer version of Fanline has upgraded the archive's schema to revision {found}; this version supports "
            f"revisions up to {known}. Upgrade Fanline."
        )


class SchemaOutdated(SchemaMismatch):
    """The archive's schema is absent or outdated, and a read-only command does not upgrade it."""

    def __init__(self) -> None:
        super().__init__(
            "The archive does not exist, or its schema is older than this version of Fanline. Check "
            "FANLINE_ARCHIVE_URL; if it is correct, `fanline serve`, `fanline worker` and `fanline repair` upgrade it."
        )


def state(connection: Connection) -> SchemaState:
    """Return the state of the schema. Raises SchemaTooNew if this version does not know the revision."""
    known = revisions()
    found = connection.scalar(select(VERSIONS.c.version_num)) if inspect(connection).has_table(VERSION_TABLE) else None
    if found is None:
        return SchemaState.ABSENT
    if found not in known:
        raise SchemaTooNew(found, known[-1])
    return SchemaState.CURRENT if found == known[-1] else SchemaState.OUTDATED


@cache
def revisions() -> tuple[str, ...]:
    """Return all revisions of the schema, newest last: the first part of each migration module's name."""
    modules = pkgutil.iter_modules([str(Path(__file__).with_name("versions"))])
    return tuple(sorted(module.name.partition("_")[0] for module in modules))


async def upgrade(connection: AsyncConnection) -> None:
    """Run the missing migrations in the connection's transaction. Wait while another process runs them."""
    await _take_turns(connection)
    while not _running.acquire(blocking=False):  # noqa: ASYNC110 - its holder may run in another event loop
        await asyncio.sleep(RETRY_SECONDS)
    try:
        await connection.run_sync(_upgrade)
    finally:
        _running.release()


async def _take_turns(connection: AsyncConnection) -> None:
    """Acquire a lock that is released with the transaction or connection. On SQLite, the transaction is the lock."""
    name = f"fanline_migration_{connection.engine.url.database}"
    if connection.dialect.name == "postgresql":
        await connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(name))))
    elif connection.dialect.name == "mysql":
        short = hashlib.sha256(name.encode()).hexdigest()[:48]  # lock names are global to the server
        if not await connection.scalar(select(func.get_lock(short, int(TIMEOUT_SECONDS)))):
            raise TimeoutError(f"another process has been upgrading the schema for {TIMEOUT_SECONDS:g} seconds")


def _upgrade(connection: Connection) -> None:
    from alembic import command

    if state(connection) is not SchemaState.CURRENT:
        VERSIONS.create(connection, checkfirst=True)  # Alembic would name the primary key, and MySQL warns about that
        command.upgrade(_config(connection=connection, version_table=VERSION_TABLE), "head")


def _config(**attributes: Any) -> "Config":
    from alembic.config import Config

    config = Config(attributes=attributes)
    config.set_main_option("script_location", "graph.archive:migrations")
    config.set_main_option("path_separator", "os")
    return config
