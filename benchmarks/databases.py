"""Private SQL databases for measurements: SQLite, PostgreSQL and MariaDB. Every commit is on disk before it returns."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from tests.support.sql_servers import MariaDB, PostgreSQL, Server, make_mariadb, make_postgresql


class DurablePostgreSQL(PostgreSQL):
    """A private PostgreSQL that syncs every commit."""

    options = ("fsync=on", "shared_buffers=128MB", "max_wal_size=4GB")


class DurableMariaDB(MariaDB):
    """A private MariaDB that syncs every commit."""

    options = ("--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=128M")


SERVERS: dict[str, Callable[[], Server]] = {
    "PostgreSQL": lambda: make_postgresql(DurablePostgreSQL),
    "MariaDB": lambda: make_mariadb(DurableMariaDB),
}
SQLITE = "SQLite"


@contextmanager
def databases(kinds: Sequence[str]) -> Iterator[dict[str, Callable[[], str]]]:
    """Yield, for each kind that is installed, a function that creates an empty database and returns its URL.

    The servers are stopped at the end of the block.
    """
    servers: dict[str, Server] = {}
    with tempfile.TemporaryDirectory(prefix="fanline-benchmark-") as folder:
        makers: dict[str, Callable[[], str]] = {SQLITE: lambda: f"sqlite:///{tempfile.mkdtemp(dir=folder)}/archive"}
        try:
            for kind in kinds:
                if kind in SERVERS and (server := installed(kind)):
                    servers[kind] = server
                    server.start()
                    makers[kind] = server.database
            yield {kind: makers[kind] for kind in kinds if kind in makers}
        finally:
            for server in servers.values():
                server.close()


def installed(kind: str) -> Server | None:
    """Return a server of this kind, not yet started, or None if it is not installed."""
    try:
        return SERVERS[kind]()
    except pytest.skip.Exception:
        return None
