"""The events that a process remembers because they may not be projected."""

import pytest

from graph.feed import unprojected
from graph.feed.unprojected import Unprojected
from graph.log.events import Blocked, Event, Followed, PostDeleted, PostPublished, Reposted, Unreposted
from graph.log.moderation_events import UserSuspended


def follow(number: int) -> Event:
    return Event(number, Followed(1, number))


def test_events_are_remembered_until_they_are_projected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events are kept in two generations, and the older one is forgotten as a whole."""
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


def test_events_of_posts_are_known_by_number_and_author() -> None:
    """This includes replies that are not listed, because pages of replies show them."""
    known = Unprojected(0)
    reply = PostPublished(2, "a reply", reply_to=10, listed=False)
    for event in (
        Event(10, PostPublished(1, "hi")),
        Event(20, Reposted(2, 10, 1)),
        Event(30, reply),
        Event(40, PostDeleted(1, 10)),
        Event(50, Unreposted(2, 10, 20)),
        Event(60, PostPublished(3, "not asked for")),
    ):
        known.add(event)
    assert known.by_authors([2, 1, 4]) == [10, 20, 30, 40, 50]


def test_what_retention_has_removed_is_forgotten() -> None:
    known = Unprojected(0)
    blocks = Event(20, Blocked(1, 2)), Event(30, Blocked(2, 1))
    suspensions = Event(21, UserSuspended(3)), Event(31, UserSuspended(4))
    for event in (Event(10, PostPublished(1, "hi")), *blocks, *suspensions, Event(40, PostPublished(1, "hi again"))):
        known.add(event)
    known.start_after(25)
    assert known.since == known.watermark == 25
    assert known.of(1) == known.of(2) == [blocks[1]]
    assert known.of_all() == [suspensions[1]]
    assert known.by_authors([1]) == [40]


def test_events_are_remembered_for_some_seconds() -> None:
    """They are remembered however fast the workers are: otherwise a join would load the follows again and again."""
    known = Unprojected(0)
    known.add(follow(10))
    for _ in range(3):
        known.note_watermark(10, 10)
    assert known.of(1) == [follow(10)]
    assert known.since == 0
