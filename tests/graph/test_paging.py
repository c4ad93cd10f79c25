"""Cursors and windows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.errors import BadPaging
from graph.model import MAX_NUMBER
from graph.paging import CursorKind, Window, decode_cursor, encode_cursor, encode_cursors

KINDS = list(CursorKind)
numbers = st.integers(0, MAX_NUMBER)


@given(st.sampled_from(KINDS), numbers)
def test_a_cursor_contains_its_number(kind: CursorKind, number: int) -> None:
    assert decode_cursor(kind, encode_cursor(kind, number)) == number


@given(st.sampled_from(KINDS), numbers, numbers)
def test_cursors_compare_like_their_numbers(kind: CursorKind, one: int, other: int) -> None:
    """They compare as strings, so that clients can insert live posts in the right place."""
    cursors = encode_cursors(kind, [one, other])
    assert (cursors[0] < cursors[1]) is (one < other)
    assert cursors == [encode_cursor(kind, one), encode_cursor(kind, other)]


@given(numbers, st.sampled_from(KINDS), st.sampled_from(KINDS))
def test_a_cursor_of_another_kind_is_refused(number: int, kind: CursorKind, wanted: CursorKind) -> None:
    """The message names both kinds."""
    if kind is not wanted:
        with pytest.raises(BadPaging, match=f"'before' is a {kind.value} cursor.*{wanted.value}"):
            decode_cursor(wanted, encode_cursor(kind, number), "before")


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "x",
        "é",
        "伟",
        "\ud800",
        "post",
        "post-",
        "post-5",
        "post-00000000000005\n",
        " post-00000000000005",
        "post-000000000000005",
        "post-0000000000000A",
        "post-0000000000000g",
        "post-٠٠٠٠٠٠٠٠٠٠٠٠٠٣",
        "post--0000000000005",
        "post-+0000000000005",
        "post-0x000000000005",
        "post-0000_000000005",
        "post-20000000000000",  # MAX_NUMBER + 1
        "post-" + "9" * 5000,
        "Post-00000000000005",
        "like-00000000000005",
        "-00000000000005",
        "00000000000005",
        "x" * 100_000,
    ],
)
def test_a_string_that_is_no_cursor_is_refused(broken: str) -> None:
    """The message names the argument."""
    with pytest.raises(BadPaging, match="'after' is"):
        decode_cursor(CursorKind.POST, broken)


@given(st.text(max_size=40))
def test_any_text_is_decoded_or_refused(text: str) -> None:
    try:
        number = decode_cursor(CursorKind.POST, text)
    except BadPaging:
        return
    assert encode_cursor(CursorKind.POST, number) == text


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({}, "'first' or 'last'"),
        ({"first": 1, "last": 1}, "not both"),
        ({"first": 0}, "'first' must be from 1 to 100, not 0"),
        ({"first": -1}, "'first' must be"),
        ({"first": 101}, "not 101"),
        ({"last": 0}, "'last' must be"),
        ({"last": 2**31}, "'last' must be"),
        ({"first": 1, "after": "x"}, "'after' is not a cursor"),
        ({"first": 1, "before": "x"}, "'before' is not a cursor"),
        ({"last": 1, "before": encode_cursor(CursorKind.LOG, 1)}, "'before' is a log cursor"),
    ],
)
def test_invalid_arguments_are_refused(arguments: dict[str, int | str], complaint: str) -> None:
    with pytest.raises(BadPaging, match=complaint):
        Window.of(CursorKind.POST, **arguments)  # type: ignore[arg-type] # wrong on purpose


def test_cursors_bound_pages_in_either_direction() -> None:
    low, high = (encode_cursor(CursorKind.POST, number) for number in (10, 20))

    for arguments in ({"first": 5}, {"last": 5}):
        window = Window.of(CursorKind.POST, after=high, before=low, **arguments)
        assert (window.low, window.high, window.count) == (10, 20, 5)


@given(st.integers(1, 5), st.booleans(), st.booleans(), st.integers(0, 6))
def test_a_page_shows_whether_there_are_more_entries(count: int, forward: bool, bounded: bool, found: int) -> None:
    """A page reads one extra entry in its direction. At the other end, a given cursor means that there are more."""
    low, high = (0, 50) if forward else (50, MAX_NUMBER + 1)
    window = Window(count, forward, *((low, high) if bounded else ()))
    entries = list(range(min(found, count + 1)))

    page = window.page(entries)

    assert list(page.items) == (entries[:count] if forward else entries[:count][::-1])
    onwards, back = (page.has_next, page.has_previous) if forward else (page.has_previous, page.has_next)
    assert onwards == (len(entries) > count)
    assert back == bounded
