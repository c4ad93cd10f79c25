"""The archive's schema, one migration a file in `versions`, and the running of those that are missing.

Processes that start together take turns: each of them holds a lock of the database while it looks and migrates.
"""

import asyncio
import hashlib
import threading
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


class SchemaTooNew(GraphError):
    """A newer version of Fanline has migrated the archive; this one must not touch it."""

    def __init__(self, found: str, known: str) -> None:
        super().__init__(
            f"The archive was migrated to revision {found} by a newer version of Fanline; this one knows up to {known}."
        )


def is_current(connection: Connection) -> bool:
    """Tell whether the schema is the one this version knows. Raises SchemaTooNew if it does not know it."""
    scripts = ScriptDirectory.from_config(_config())
    known, head = {script.revision for script in scripts.walk_revisions()}, scripts.get_current_head()
    found = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()
    if found is not None and found not in known:
        raise SchemaTooNew(found, str(head))
    return found == head


async def upgrade(connection: AsyncConnection) -> None:
    """Run the migrations that are missing, in the connection's transaction; wait for other processes that do."""
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
    if not is_current(connection):
        VERSIONS.create(connection, checkfirst=True)  # alembic would name the key, which MySQL warns of
        command.upgrade(_config(connection=connection, version_table=VERSION_TABLE), "head")


def _config(**attributes: Any) -> Config:
    config = Config(attributes=attributes)
    config.set_main_option("script_location", "graph.archive:migrations")
    config.set_main_option("path_separator", "os")
    return config
