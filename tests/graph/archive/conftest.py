"""Fixtures of the tests of the archive's SQL side."""

from collections.abc import AsyncIterator

import pytest

from graph.archive.archive import Archive
from tests.support.databases import PATIENCE


@pytest.fixture
async def archive(archive_url: str) -> AsyncIterator[Archive]:
    """Open an empty archive. Its timeout allows for large batches on a busy machine."""
    archive = Archive(archive_url, timeout=PATIENCE)
    yield archive
    await archive.close()
