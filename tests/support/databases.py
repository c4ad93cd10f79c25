"""Databases for tests: SQLite files and databases of private servers, each one empty or with an empty archive."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.schedule import DATABASE_SERVERS
from tests.support.sql_servers import MAKERS, PASSWORD, PATIENCE, Server, in_thread, make_archive

__all__ = ["DATABASES", "PASSWORD", "PATIENCE", "SERVERS", "Server", "in_thread"]

SERVERS = tuple(pytest.param(name, marks=pytest.mark.external) for name in DATABASE_SERVERS)
"""The kinds of database that need a server, as test parameters."""
DATABASES = ("sqlite", *SERVERS)
"""All kinds of database, as test parameters."""


@pytest.fixture(scope="session")
def sql_servers() -> Iterator[Callable[[str], Server]]:
    """Return a function that returns the running server `postgresql` or `mariadb`."""
    servers: dict[str, Server] = {}

    def running(name: str) -> Server:
        if name not in servers:
            servers[name] = MAKERS[name]()
        servers[name].start()
        return servers[name]

    yield running
    for server in servers.values():
        server.close()


@pytest.fixture(scope="session")
def sqlite_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of an empty archive, which tests copy."""
    file = tmp_path_factory.mktemp("template") / "archive.sqlite"
    make_archive(f"sqlite:///{file}")
    return file


@pytest.fixture(params=DATABASES)
def archive_url(request: pytest.FixtureRequest, tmp_path: Path, sql_servers: Callable[[str], Server]) -> str:
    """Return the URL of an empty archive, for each kind of database."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("sqlite_archive"), tmp_path / "archive.sqlite")
        return f"sqlite+aiosqlite:///{tmp_path}/archive.sqlite"
    return sql_servers(request.param).archive()


@pytest.fixture(params=DATABASES)
def empty_database(request: pytest.FixtureRequest, tmp_path: Path, sql_servers: Callable[[str], Server]) -> str:
    """Return the URL of an empty database, for each kind of database. Its first use creates an archive in it."""
    if request.param == "sqlite":
        return f"sqlite+aiosqlite:///{tmp_path}/archive.sqlite"
    return sql_servers(request.param).database()
