"""How the tests of the live feed read the log."""

import pytest


@pytest.fixture
def short_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the reader wait for new events for 0.2 s at a time. It notices some things only between two reads."""
    monkeypatch.setattr("graph.feed.reader.BLOCK_SECONDS", 0.2)
