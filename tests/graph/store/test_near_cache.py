"""The near cache alone: when its values may be used, and which values it keeps."""

import pytest

from graph.store import near_cache
from graph.store.near_cache import LOST, MISSING, NEVER, NearCache, TrackingPeriod

START = 0
"""The moment of a request that began before all reads."""


@pytest.fixture
def near() -> NearCache:
    """Return a cache of four values."""
    return NearCache(4)


@pytest.fixture
def source(near: NearCache) -> TrackingPeriod:
    """Return the source of a connection that has answered a read."""
    return answering(near)


def answering(near: NearCache) -> TrackingPeriod:
    """Open a connection that tracks keys, and answer a read."""
    source = near.connected()
    near.sent += 1
    source.answered = near.sent
    return source


def keep(near: NearCache, source: TrackingPeriod, **values: int) -> None:
    """Ask for values, and keep them."""
    read = object()
    near.ask(values, read)
    near.keep(list(values), list(values.values()), [source] * len(values), read)


def found(near: NearCache, *keys: str, moment: int = START) -> list[object]:
    """Return the values of keys for a request that began at the given moment."""
    return near.find(keys, moment)[0]


def test_values_may_be_used_once_a_later_read_was_answered(near: NearCache, source: TrackingPeriod) -> None:
    """Reads that were sent before the request began do not count."""
    keep(near, source, a=1)
    near.sent = 3
    moment = near.begin()
    source.answered = 3
    assert found(near, "a", moment=moment) == [MISSING]

    near.sent = source.answered = 4

    assert found(near, "a", moment=moment) == [1]
    assert found(near, "a", moment=near.begin()) == [MISSING]
    assert found(near, "a", moment=NEVER) == [MISSING]


def test_each_source_vouches_for_its_own_values(near: NearCache, source: TrackingPeriod) -> None:
    """Replies over one connection say nothing about the keys of another server."""
    other = answering(near)
    keep(near, source, a=1)
    keep(near, other, b=2)
    moment = near.begin()
    near.sent = other.answered = near.sent + 1

    assert found(near, "a", "b", moment=moment) == [MISSING, 2]
    assert near.holds(["a", "b"])


def test_after_an_advance_values_are_used_after_the_next_reply(near: NearCache, source: TrackingPeriod) -> None:
    keep(near, source, a=1)
    assert found(near, "a") == [1]

    near.advance()
    assert found(near, "a") == [MISSING]

    near.sent = source.answered = near.sent + 1
    assert found(near, "a") == [1]


def test_kept_values_are_found(near: NearCache, source: TrackingPeriod) -> None:
    """Absent records are values too."""
    read = object()
    near.ask(["a", "b"], read)
    near.keep(["a", "b"], [1, None], [source, source], read)

    assert near.find(["b", "c", "a"], START) == ([None, MISSING, 1], [1])
    assert (near.hits, near.misses) == (2, 1)
    assert near.holds(["a", "b"])
    assert not near.holds(["a", "c"])


def test_an_invalidated_value_is_dropped(near: NearCache, source: TrackingPeriod) -> None:
    keep(near, source, a=1, b=2)

    near.invalidate(["a", "unknown"])

    assert near.find(["a", "b"], START) == ([MISSING, 2], [0])


def test_a_key_that_is_invalidated_before_its_read_is_done_is_not_kept(near: NearCache, source: TrackingPeriod) -> None:
    """The reply may arrive before the invalidation and then wait for other replies of its read."""
    read = object()
    near.ask(["a", "b"], read)
    near.invalidate(["a"])
    near.keep(["a", "b"], [1, 2], [source, source], read)

    assert near.find(["a", "b"], START) == ([MISSING, 2], [0])


def test_only_the_last_read_of_a_key_keeps_its_value(near: NearCache, source: TrackingPeriod) -> None:
    """An invalidation between two reads must not be undone by the reply to the first one."""
    first, second = object(), object()
    near.ask(["a"], first)
    near.invalidate(["a"])
    near.ask(["a"], second)
    near.keep(["a"], [1], [source], first)
    assert near.find(["a"], START)[0] == [MISSING]

    near.keep(["a"], [2], [source], second)
    assert near.find(["a"], START)[0] == [2]


def test_a_value_without_a_source_is_not_kept(near: NearCache, source: TrackingPeriod) -> None:
    """A source that has given a value is marked, so that later reads send it a command."""
    read = object()
    near.ask(["a", "b"], read)
    near.keep(["a", "b"], [1, 2], [None, source], read)

    assert source.gave
    assert found(near, "a", "b") == [MISSING, 2]


def test_a_released_read_keeps_nothing(near: NearCache, source: TrackingPeriod) -> None:
    read = object()
    near.ask(["a"], read)
    near.release(["a"], object())
    near.release(["a"], read)
    near.keep(["a"], [1], [source], read)

    assert len(near) == 0


def test_a_flush_drops_everything(near: NearCache, source: TrackingPeriod) -> None:
    """Values that were requested before the flush are not kept, whenever the replies arrive."""
    keep(near, source, a=1)
    later = near.renewed(source)
    near.sent = later.answered = near.sent + 1

    keep(near, source, b=2)

    assert found(near, "a", "b") == [MISSING, MISSING]
    assert not near.holds(["b"])
    keep(near, later, b=3)
    assert found(near, "b") == [3]


def test_a_lost_connection_drops_what_came_over_it(near: NearCache, source: TrackingPeriod) -> None:
    """Values of other connections remain."""
    other = answering(near)
    keep(near, source, a=1)
    keep(near, other, b=2)

    near.disconnected(source)
    keep(near, source, c=3)

    assert source.answered == LOST
    assert found(near, "a", "b", "c") == [MISSING, 2, MISSING]
    assert near.peek(["a"]) == [MISSING]
    near.disconnect_all()
    assert not near.tracking
    assert len(near) == 0


def test_values_that_were_not_used_recently_make_room(near: NearCache, source: TrackingPeriod) -> None:
    """At most four values are held."""
    keep(near, source, a=1, b=2)
    keep(near, source, c=3)
    assert near.find(["a"], START)[0] == [1]

    keep(near, source, d=4)
    keep(near, source, e=5)

    assert len(near) <= 4
    assert near.find(["b"], START)[0] == [MISSING]
    assert near.find(["a", "d", "e"], START)[0] == [1, 4, 5]


def test_a_value_that_replaces_another_is_held_once(near: NearCache, source: TrackingPeriod) -> None:
    keep(near, source, a=1, b=2)
    keep(near, source, c=3)
    keep(near, source, a=4)

    assert near.find(["a"], START)[0] == [4]
    near.invalidate(["a"])
    assert near.find(["a"], START)[0] == [MISSING]


def test_a_value_that_is_found_may_drop_others(near: NearCache, source: TrackingPeriod) -> None:
    """The value moves to the young values. When these are full, they become the old ones."""
    keep(near, source, a=1, b=2)
    keep(near, source, c=3, d=4)

    assert near.find(["a", "b"], START) == ([1, MISSING], [1])
    assert len(near) == 3


@pytest.mark.parametrize(("finds", "rests"), [(1, True), (2, False), (10, False)])
def test_the_cache_rests_while_few_look_ups_find_anything(
    monkeypatch: pytest.MonkeyPatch, finds: int, rests: bool
) -> None:
    """In this test, at least two of every ten look-ups must succeed; otherwise the cache rests for the next thirty."""
    monkeypatch.setattr(near_cache, "WINDOW", 10)
    monkeypatch.setattr(near_cache, "REST", 30)
    near = NearCache(4)
    keep(near, answering(near), a=1)
    for look_up in range(10):
        assert near.tracking
        found(near, "a" if look_up < finds else "b")
    assert near.tracking is not rests
    near.rest(29)
    assert near.tracking is not rests
    near.rest(1)
    assert near.tracking
    for _ in range(10):
        found(near, "a")
    assert near.tracking
