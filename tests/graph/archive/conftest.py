"""Fixtures of the tests of the archive's SQL side."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from graph.archive.archive import Archive
from tests.support.databases import PATIENCE


@pytest.fixture
async def archive(archive_url: str) -> AsyncIterator[Archive]:
    """Open an empty archive. Its timeout allows for large batches on a busy machine."""
    archive = Archive(archive_url, timeout=PATIENCE)
    yield archive
    await archive.close()


@pytest.fixture
async def opened() -> AsyncIterator[Callable[..., Archive]]:
    """Return a function that opens archives. They are closed after the test."""
    archives: list[Archive] = []

    def open_(url: str, **options: Any) -> Archive:
        archives.append(Archive(url, **options))
        return archives[-1]

    yield open_
    for archive in archives:
        await archive.close()
