"""The archive of the tests of rebuilds."""

from pathlib import Path

import pytest


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return the URL of an SQLite file, in which the first use makes an archive."""
    return f"sqlite:///{tmp_path}/archive.sqlite"
