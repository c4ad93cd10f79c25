"""Fixtures for tests of the archive's SQL code."""

import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from graph.archive.archive import Archive
from tests.support.databases import PATIENCE, Server

NewArchive: TypeAlias = Callable[[str], str]
"""Returns the URL of a new and empty archive for a kind of database."""


@pytest.fixture(scope="session")
def new_archive(
    sqlite_archive: Path, sql_servers: Callable[[str], Server], tmp_path_factory: pytest.TempPathFactory
) -> NewArchive:
    """Return a function that creates archives for tests to share."""

    def make(kind: str) -> str:
        if kind != "sqlite":
            return sql_servers(kind).new_archive()
        return f"sqlite+aiosqlite:///{shutil.copy(sqlite_archive, tmp_path_factory.mktemp('shared'))}"

    return make


@pytest.fixture
async def archive(archive_url: str) -> AsyncIterator[Archive]:
    """Open an empty archive. Its timeout allows for large batches on a busy machine."""
    archive = Archive(archive_url, timeout=PATIENCE)
    yield archive
    await archive.close()


@pytest.fixture
async def opened() -> AsyncIterator[Callable[..., Archive]]:
    """Return a function that opens archives, by default with a long timeout. They are closed after the test."""
    archives: list[Archive] = []

    def open_(url: str, **options: Any) -> Archive:
        archives.append(Archive(url, **{"timeout": PATIENCE, **options}))
        return archives[-1]

    yield open_
    for archive in archives:
        await archive.close()
