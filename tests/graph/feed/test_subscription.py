"""The deletions that a subscription remembers."""

from typing import Any

from graph.feed.subscription import REMEMBERED_DELETIONS, Subscription
from graph.feed.updates import PostRemoved


def test_a_limited_number_of_deletions_is_remembered() -> None:
    """The memory of a stream must not grow with the deletions that it sends."""
    subscription: Subscription[Any] = object.__new__(Subscription)
    subscription._deleted = ()

    for number in range(3 * REMEMBERED_DELETIONS):
        assert not subscription._is_repeated(PostRemoved(number + 1, number, 1))

    assert subscription._is_repeated(PostRemoved(10**6, number, 1))
    assert len(subscription._deleted) == REMEMBERED_DELETIONS
