"""Records: times and immutability."""

from datetime import UTC, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graph.model import EPOCH, MAX_NUMBER, SEQUENCE_BITS, Post, number_at, time_of


@given(st.integers(0, MAX_NUMBER))
@example(0)
@example(MAX_NUMBER)
def test_the_time_of_a_number_is_exact_to_the_millisecond(number: int) -> None:
    """The time is exact from 2020 to 2089, in UTC, in both directions."""
    time = time_of(number)

    assert time == EPOCH + timedelta(milliseconds=number >> SEQUENCE_BITS)
    assert time.tzinfo is UTC
    assert number_at(time) == number >> SEQUENCE_BITS << SEQUENCE_BITS


def test_records_are_equal_by_value_and_immutable() -> None:
    post = Post(1, 2, "text")

    assert post == Post(1, 2, "text")
    assert post != Post(1, 2, "other")
    with pytest.raises(AttributeError):
        post.text = "other"  # type: ignore[misc] # the assignment under test
