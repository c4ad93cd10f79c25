"""The fixture for tests of the archiver."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.graph.archiver.world import ArchiveWorld, archive_world


@pytest.fixture
async def world(store_url: str, tmp_path: Path) -> AsyncIterator[ArchiveWorld]:
    """Create a world in which everything is projected and nothing is archived."""
    async with archive_world(store_url, tmp_path) as world:
        yield world
