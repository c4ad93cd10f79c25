"""Graphs on a test's store, each with the archive that belongs to the store."""

import asyncio
import hashlib
import sqlite3
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import event

from graph import Graph, Tuning, keys
from graph.archive.archive import Archive
from graph.binding import binding_of
from graph.store.store import Store
from tests.support.raw import lasting_client

T = TypeVar("T")

CHEAP = Tuning(argon2_time_cost=1, argon2_memory_kib=8, argon2_parallelism=1)
STORE_ID = "store-of-the-test"
PATIENCE = 60.0  # until the archive counts as silent: a busy machine may not run the event loop for seconds


async def open_graph(
    url: str,
    tuning: Tuning = CHEAP,
    store: Callable[[str], Store] = Store,
    archive: Archive | None = None,
) -> Graph:
    """Return a graph on a store. The default archive is the one that belongs to the store."""
    return await Graph.open(url, archive or archive_beside(url), tuning, store)


def archive_beside(url: str) -> Archive:
    """Return the archive that belongs to a store. Every call opens the same database."""
    archive = Archive(archive_url_of(url), timeout=PATIENCE)
    execute_at_once(archive)
    return archive


def execute_at_once(archive: Archive) -> None:
    """Let an SQLite archive execute its statements in the event loop, without syncing to disk.

    Handing a statement to a thread and waiting takes longer than most statements. Tests simulate crashes of processes,
    not of the machine.
    """
    event.listen(archive.database.engine.sync_engine, "do_connect", allow_threads)
    event.listen(archive.database.engine.sync_engine, "connect", disable_sync)


def allow_threads(dialect: Any, record: Any, arguments: Any, options: dict[str, Any]) -> None:
    """Let the thread of the event loop use a connection that the driver has opened in another thread."""
    options["check_same_thread"] = False


def disable_sync(connection: Any, record: Any) -> None:
    """Turn off syncing to disk, and execute statements without a thread."""
    connection.driver_connection._execute = at_once
    connection.execute("PRAGMA busy_timeout = 0").close()  # `at_once` waits instead
    connection.execute("PRAGMA synchronous = OFF").close()
    connection.execute("PRAGMA journal_mode = WAL").close()
    record.info["durable"] = True  # otherwise the archive enables syncing


async def at_once(call: Callable[..., T], *arguments: Any) -> T:
    """Call a function at once, and return its result.

    Wait in the event loop while another connection locks the file: its transaction may continue in this event loop.
    Waiting cannot help a transaction that wants to write after it has read an older state.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return call(*arguments)
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or error.sqlite_errorcode == sqlite3.SQLITE_BUSY_SNAPSHOT or time.monotonic() > deadline:
                raise
        await asyncio.sleep(0.002)


def archive_url_of(url: str) -> str:
    """Return the URL of the archive that belongs to a store."""
    return f"sqlite:///{archive_file(url)}"


def environment_of(store_url: str, data_dir: Path) -> dict[str, str]:
    """Return the settings of a command that uses a store and its archive."""
    return {
        "FANLINE_STORE_URL": store_url,
        "FANLINE_ARCHIVE_URL": archive_url_of(store_url),
        "FANLINE_DATA_DIR": str(data_dir),
    }


def archive_file(url: str) -> Path:
    """Return the file of the archive that belongs to a store."""
    socket = url.removeprefix("unix://").partition("?")[0]
    name = hashlib.sha256(url.encode()).hexdigest()[:16]
    folder = Path(socket).parent if url.startswith("unix://") else Path(tempfile.gettempdir())
    return folder / f"archive-{name}.sqlite"


def empty(url: str) -> None:
    """Empty a store, and bind it to a new and empty archive."""
    remove_archive(url)
    empty_archive, archive_id = bound_archive()
    archive_file(url).write_bytes(empty_archive)
    client = lasting_client(url)
    client.flushall()
    client.set(keys.BINDING, binding_of(STORE_ID, archive_id))


def remove_archive(url: str) -> None:
    """Remove the archive that belongs to a store."""
    file = archive_file(url)
    for suffix in ("", "-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)


@cache
def bound_archive() -> tuple[bytes, str]:
    """Return an empty SQLite archive bound to `STORE_ID`, as bytes, and its id. Copying is faster than migrating."""

    async def make(file: Path) -> str:
        archive = Archive(f"sqlite:///{file}")
        await archive.bind(STORE_ID, replacing=None, unused_only=False)
        state = await archive.state()
        await archive.close()
        return state.id

    with tempfile.TemporaryDirectory(prefix="fanline-") as folder, ThreadPoolExecutor(1) as thread:
        file = Path(folder) / "archive.sqlite"
        archive_id = thread.submit(asyncio.run, make(file)).result()  # a fixture may run while an event loop runs
        return file.read_bytes(), archive_id
