"""Posting lists: few values or many, they are what was put there."""

from hypothesis import given
from hypothesis import strategies as st

from graph.feed.posting_lists import FEW, PostingLists, Values, common, excluding, including

some = st.sets(st.integers(0, 3 * FEW), max_size=2 * FEW)


def values(of: set[int]) -> Values[int]:
    found: Values[int] = ()
    for value in of:
        found = including(found, value)
    return found


@given(some, some)
def test_values_are_what_was_included_and_not_excluded(one: set[int], other: set[int]) -> None:
    """Each once, whether they are few or many, or become so."""
    for value in one:
        assert including(values(one), value) == values(one)
    kept = values(one)
    for value in one & other:
        kept = excluding(kept, value)
    assert sorted(kept) == sorted(one - other)


@given(some, some)
def test_what_two_have_in_common(one: set[int], other: set[int]) -> None:
    """Few and few, few and many, many and many."""
    assert common(values(one), values(other)) == one & other


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 3))))
def test_keys_without_values_are_forgotten(changes: list[tuple[bool, int, int]]) -> None:
    """The lists hold what was put under each key and not taken away."""
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
    assert sorted(postings.among([0, 1, 1, 9])) == sorted([*expected.get(0, ()), *expected.get(1, ())])
