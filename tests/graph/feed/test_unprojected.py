"""The follows and log-outs that a process remembers because they may not be projected."""

import pytest

from graph.feed import unprojected
from graph.feed.unprojected import Unprojected
from graph.log.events import Event, Followed


def follow(number: int) -> Event:
    return Event(number, Followed(1, number))


def test_events_are_remembered_until_they_are_projected(monkeypatch: pytest.MonkeyPatch) -> None:
    """In two generations, of which the older one is forgotten as a whole."""
    monkeypatch.setattr(unprojected, "KEEP_SECONDS", 0.0)
    known = Unprojected(0)
    first, second, third = map(follow, (10, 20, 30))
    known.add(first)
    known.note_watermark(0, 10)
    known.add(second)
    known.note_watermark(5, 20)
    assert known.of(1) == [first, second]

    known.note_watermark(10, 20)
    known.add(third)
    known.note_watermark(15, 30)
    assert known.of(1) == [second, third]
    assert known.since == 10
    assert known.of(2) == []


def test_events_are_remembered_for_some_seconds() -> None:
    """However quick the workers are: else a join would have to load the follows again and again."""
    known = Unprojected(0)
    known.add(follow(10))
    for _ in range(3):
        known.note_watermark(10, 10)
    assert known.of(1) == [follow(10)]
    assert known.since == 0
