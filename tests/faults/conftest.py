"""Fixtures of the fault tests: further processes on the same store, a plain client, and an archiver without pauses."""

import pytest

from tests.conftest import FAN_OUT_SECONDS, PROJECTION_SECONDS
from tests.graph.conftest import another, raw

__all__ = ["another", "raw"]


@pytest.fixture(autouse=True)
def limited_projections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave projections to a worker after the same delay as in production."""
    monkeypatch.setattr("graph.commit.PROJECTION_SECONDS", PROJECTION_SECONDS)
    monkeypatch.setattr("graph.projections.posts.FAN_OUT_SECONDS", FAN_OUT_SECONDS)


@pytest.fixture
def prompt_archiver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the archivers of this process look for events, retry, and check the archive without pauses."""
    for name, seconds in (("INTERVAL_SECONDS", 0.02), ("RETRY_SECONDS", 0.05), ("CHECK_SECONDS", 0.05)):
        monkeypatch.setattr(f"graph.archiver.archiver.{name}", seconds)
