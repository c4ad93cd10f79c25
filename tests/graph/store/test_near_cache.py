"""The near cache by itself: when its values may be used, and what it keeps."""

import pytest

from graph.store.near_cache import MISSING, NEVER, NearCache


@pytest.fixture
def near() -> NearCache:
    """Return a cache of four values on a connection that tracks keys."""
    near = NearCache(4)
    near.connected(tracking=True)
    return near


def keep(near: NearCache, **values: int) -> None:
    """Ask for values, and keep them."""
    read = object()
    near.ask(values, read)
    near.keep(list(values), list(values.values()), read)


def test_values_may_be_used_once_a_later_read_was_answered(near: NearCache) -> None:
    """Reads that were sent before the request began do not count."""
    near.sent = 3
    moment = near.begin()
    near.answered = 3
    assert not near.reached(moment)

    near.sent, near.answered = 4, 4

    assert near.reached(moment)
    assert not near.reached(near.begin())
    assert not near.reached(NEVER)


def test_after_an_advance_values_are_used_after_the_next_reply(near: NearCache) -> None:
    near.sent = near.answered = 1
    assert near.reached(0)

    near.advance()
    assert not near.reached(0)

    near.sent = near.answered = 2
    assert near.reached(0)


def test_kept_values_are_found(near: NearCache) -> None:
    """Absent records are values, too."""
    read = object()
    near.ask(["a", "b"], read)
    near.keep(["a", "b"], [1, None], read)

    assert near.find(["b", "c", "a"]) == ([None, MISSING, 1], [1])
    assert (near.hits, near.misses) == (2, 1)
    assert near.holds(["a", "b"])
    assert not near.holds(["a", "c"])


def test_an_invalidated_value_is_dropped(near: NearCache) -> None:
    keep(near, a=1, b=2)

    near.invalidate(["a", "unknown"])

    assert near.find(["a", "b"]) == ([MISSING, 2], [0])


def test_a_key_that_is_invalidated_before_its_read_is_done_is_not_kept(near: NearCache) -> None:
    """The reply may have arrived before the invalidation, and wait for the other replies of its read."""
    read = object()
    near.ask(["a", "b"], read)
    near.invalidate(["a"])
    near.keep(["a", "b"], [1, 2], read)

    assert near.find(["a", "b"]) == ([MISSING, 2], [0])


def test_only_the_last_read_of_a_key_keeps_its_value(near: NearCache) -> None:
    """An invalidation between two reads must not be undone by the reply to the first one."""
    first, second = object(), object()
    near.ask(["a"], first)
    near.invalidate(["a"])
    near.ask(["a"], second)
    near.keep(["a"], [1], first)
    assert near.find(["a"])[0] == [MISSING]

    near.keep(["a"], [2], second)
    assert near.find(["a"])[0] == [2]


def test_a_released_read_keeps_nothing(near: NearCache) -> None:
    read = object()
    near.ask(["a"], read)
    near.release(["a"], object())
    near.release(["a"], read)
    near.keep(["a"], [1], read)

    assert len(near) == 0


def test_a_flush_drops_everything(near: NearCache) -> None:
    """Reads that are under way are not kept either."""
    keep(near, a=1)
    read = object()
    near.ask(["b"], read)

    near.invalidate(None)
    near.keep(["b"], [2], read)

    assert len(near) == 0


def test_a_lost_connection_drops_everything(near: NearCache) -> None:
    keep(near, a=1)
    read = object()
    near.ask(["b"], read)

    near.disconnected()
    near.connected(tracking=True)
    near.keep(["b"], [2], read)

    assert len(near) == 0


def test_values_that_were_not_used_recently_make_room(near: NearCache) -> None:
    """At most four values are held."""
    keep(near, a=1, b=2)
    keep(near, c=3)
    assert near.find(["a"])[0] == [1]

    keep(near, d=4)
    keep(near, e=5)

    assert len(near) <= 4
    assert near.find(["b"])[0] == [MISSING]
    assert near.find(["a", "d", "e"])[0] == [1, 4, 5]


def test_a_value_that_replaces_another_is_held_once(near: NearCache) -> None:
    keep(near, a=1, b=2)
    keep(near, c=3)
    keep(near, a=4)

    assert near.find(["a"])[0] == [4]
    near.invalidate(["a"])
    assert near.find(["a"])[0] == [MISSING]


def test_a_value_that_is_found_may_drop_others(near: NearCache) -> None:
    """It moves to the young values, and those that are full become the old ones."""
    keep(near, a=1, b=2)
    keep(near, c=3, d=4)

    assert near.find(["a", "b"]) == ([1, MISSING], [1])
    assert len(near) == 3
