"""The archive's schema: one migration per file in `versions`, and what runs them.

Processes that start together take turns: each holds a lock of the database while it checks and migrates.
"""

import asyncio
import hashlib
import threading
from enum import Enum
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Column, Connection, MetaData, String, Table, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.errors import GraphError

VERSION_TABLE = "fanline_schema"
VERSIONS = Table(VERSION_TABLE, MetaData(), Column("version_num", String(32), primary_key=True))
SECONDS = 60.0
RETRY_SECONDS = 0.05

_running = threading.Lock()  # alembic keeps the migration that runs in globals of the process


class SchemaState(Enum):
    """How the schema of a database compares with the one that this version knows."""

    ABSENT = "absent"
    OUTDATED = "outdated"
    CURRENT = "current"


class SchemaMismatch(GraphError):
    """The archive's schema is not the one that this version knows."""


class SchemaTooNew(SchemaMismatch):
    """A newer version of Fanline has migrated the archive, so this one must not use it."""

    def __init__(self, found: str, known: str) -> None:
        super().__init__(
            f"The archive was migrated to revision {found} by a newer version of Fanline; this one knows up to {known}."
        )


class SchemaOutdated(SchemaMismatch):
    """The archive has to be migrated, which a read-only command does not do."""

    def __init__(self) -> None:
        super().__init__(
            "The archive's schema is older than this version of Fanline. `fanline serve`, `fanline worker` and "
            "`fanline repair` migrate it."
        )


def state(connection: Connection) -> SchemaState:
    """Return the state of the schema. Raises SchemaTooNew if this version does not know the revision."""
    scripts = ScriptDirectory.from_config(_config())
    known, head = {script.revision for script in scripts.walk_revisions()}, scripts.get_current_head()
    found = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()
    if found is None:
        return SchemaState.ABSENT
    if found not in known:
        raise SchemaTooNew(found, str(head))
    return SchemaState.CURRENT if found == head else SchemaState.OUTDATED


async def upgrade(connection: AsyncConnection) -> None:
    """Run the missing migrations in the connection's transaction. Wait for another process that migrates."""
    await _take_turns(connection)
    while not _running.acquire(blocking=False):  # noqa: ASYNC110 - its holder may run in another event loop
        await asyncio.sleep(RETRY_SECONDS)
    try:
        await connection.run_sync(_upgrade)
    finally:
        _running.release()


async def _take_turns(connection: AsyncConnection) -> None:
    """Lock out other processes until the transaction or the connection ends; SQLite's transaction does by itself."""
    name = f"fanline_migration_{connection.engine.url.database}"
    if connection.dialect.name == "postgresql":
        await connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(name))))
    elif connection.dialect.name == "mysql":
        short = hashlib.sha256(name.encode()).hexdigest()[:48]  # the locks of all databases share their names
        if not await connection.scalar(select(func.get_lock(short, int(SECONDS)))):
            raise TimeoutError("another process migrates the archive and does not end")


def _upgrade(connection: Connection) -> None:
    if state(connection) is not SchemaState.CURRENT:
        VERSIONS.create(connection, checkfirst=True)  # alembic would name the key, which MySQL warns of
        command.upgrade(_config(connection=connection, version_table=VERSION_TABLE), "head")


def _config(**attributes: Any) -> Config:
    config = Config(attributes=attributes)
    config.set_main_option("script_location", "graph.archive:migrations")
    config.set_main_option("path_separator", "os")
    return config
