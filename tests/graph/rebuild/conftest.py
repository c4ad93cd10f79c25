"""The archive for tests of rebuilds."""

from pathlib import Path

import pytest


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return the URL of an SQLite file in which the first use creates an archive."""
    return f"sqlite:///{tmp_path}/archive.sqlite"
