"""Tests of posting lists, with few values under a key and with many."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.feed.posting_lists import FEW, CountedSet, PostingLists, Values, intersection, with_value, without_value

some = st.sets(st.integers(0, 3 * FEW), max_size=2 * FEW)


def values(of: set[int]) -> Values[int]:
    found: Values[int] = ()
    for value in of:
        found = with_value(found, value)
    return found


@given(some, some)
def test_values_are_what_was_added_and_not_removed(one: set[int], other: set[int]) -> None:
    for value in one:
        assert with_value(values(one), value) == values(one)
    kept = values(one)
    for value in one & other:
        kept = without_value(kept, value)
    assert sorted(kept) == sorted(one - other)


@given(some, some)
def test_the_intersection_is_that_of_the_sets(one: set[int], other: set[int]) -> None:
    assert intersection(values(one), values(other)) == one & other


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3))))
def test_a_counted_set_has_what_was_added_more_often_than_removed(changes: list[tuple[bool, int]]) -> None:
    counted: CountedSet[int] = CountedSet()
    counts: Counter[int] = Counter()
    for adding, value in changes:
        if adding:
            counted.add(value)
            counts[value] += 1
        elif counts[value]:
            counted.remove(value)
            counts[value] -= 1
        else:
            with pytest.raises(KeyError):
                counted.remove(value)

        assert counted.values == {value for value in counts if counts[value]}


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 3))))
def test_keys_hold_what_was_added_and_empty_keys_are_removed(changes: list[tuple[bool, int, int]]) -> None:
    postings: PostingLists[int, int] = PostingLists()
    expected: dict[int, set[int]] = {}
    for adding, key, value in changes:
        if adding:
            postings.add(key, value)
            expected.setdefault(key, set()).add(value)
        elif value in expected.get(key, ()):
            postings.remove(key, value)
            expected[key].remove(value)

    assert {key: set(postings[key]) for key in range(4)} == {key: expected.get(key, set()) for key in range(4)}
    assert {key for key in range(4) if key in postings} == {key for key, values in expected.items() if values}
    assert sorted(postings) == sorted(value for values in expected.values() for value in values)
    assert sorted(postings.of_any([0, 1, 1, 9])) == sorted([*expected.get(0, ()), *expected.get(1, ())])
