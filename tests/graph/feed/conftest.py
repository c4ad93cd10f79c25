"""Settings of the reader for tests of the live feed."""

import pytest


@pytest.fixture
def short_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the reader wait for new events for 0.2 s at a time. Some changes are noticed only between two reads."""
    monkeypatch.setattr("graph.feed.reader.BLOCK_SECONDS", 0.2)
