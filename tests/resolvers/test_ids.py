"""Global ids: each object has exactly one, and everything else is rejected."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.model import MAX_NUMBER
from resolvers.errors import BadInput
from resolvers.ids import GlobalId, Kind, decode, encode, encode_all, number
from resolvers.ids import numbers as numbers_of

numbers = st.integers(1, MAX_NUMBER)
global_ids = st.sampled_from(Kind).flatmap(
    lambda kind: st.builds(GlobalId, st.just(kind), st.tuples(*[numbers] * kind.arity))
)


@given(global_ids)
def test_ids_round_trip(global_id: GlobalId) -> None:
    assert decode(encode(global_id.kind, *global_id.numbers)) == global_id


@given(global_ids, global_ids)
def test_different_objects_have_different_ids(one: GlobalId, other: GlobalId) -> None:
    """Clients use ids as cache keys."""
    assert (encode(one.kind, *one.numbers) == encode(other.kind, *other.numbers)) == (one == other)


@given(st.text() | st.binary().map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_any_other_text_is_rejected(text: str) -> None:
    """`decode` accepts only the exact output of `encode` and raises nothing but BadInput."""
    try:
        found = decode(text)
    except BadInput:
        return
    assert encode(found.kind, *found.numbers) == text


def raw(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "User:1",
        "\ud800",
        raw("User:1") + "=",
        raw("User:1") + "\n",
        raw("User:01"),
        raw("User:0"),
        raw("User:-1"),
        raw("User: 1"),
        raw("User:١"),
        raw("User:"),
        raw("User:1:2"),
        raw("Relationship:1"),
        raw("user:1"),
        raw("Nobody:1"),
        raw(f"User:{MAX_NUMBER + 1}"),
        raw("User:" + "9" * 5000),
        raw("post:1"),
    ],
)
def test_rejects_malformed_ids(text: str) -> None:
    """Padding, leading zeros, non-ASCII digits, wrong arity, unknown kinds, large numbers and cursors are malformed."""
    with pytest.raises(BadInput):
        decode(text)


def test_rejects_another_encoding_of_the_same_bytes() -> None:
    """Base64 with non-zero padding bits decodes to the same bytes."""
    assert encode(Kind.USER, 12) == "VXNlcjoxMg"
    assert base64.urlsafe_b64decode("VXNlcjoxMh==") == b"User:12"
    with pytest.raises(BadInput):
        decode("VXNlcjoxMh")


def test_an_id_of_another_kind_has_no_number() -> None:
    assert number(Kind.USER, encode(Kind.USER, 7)) == 7
    assert number(Kind.USER, encode(Kind.POST, 7)) is None


@given(st.lists(numbers))
def test_many_ids_are_those_of_each(many: list[int]) -> None:
    ids = encode_all(Kind.USER, many)

    assert ids == [encode(Kind.USER, one) for one in many]
    assert numbers_of(Kind.USER, ids) == many


@given(
    st.sampled_from([kind for kind in Kind if kind.arity == 1]),
    st.integers(1, len(str(MAX_NUMBER))).flatmap(
        lambda digits: st.lists(st.integers(10 ** (digits - 1), min(10**digits - 1, MAX_NUMBER)), min_size=2)
    ),
)
def test_ids_with_equally_many_digits_are_those_of_each(kind: Kind, many: list[int]) -> None:
    """They are encoded together, with padding that depends on the length of the id."""
    assert encode_all(kind, many) == [encode(kind, one) for one in many]


@given(
    numbers,
    st.text()
    | st.sampled_from(("User:01", "User:0", "User: 1", "User:1_0", "User:+1", "User:1:2", "Post:1", "User:")).map(raw)
    | st.just(raw(f"User:{MAX_NUMBER + 1}"))
    | st.sampled_from(("=", "\n", "A", "/", "-")).map(lambda extra: encode(Kind.USER, 1) + extra),
)
def test_many_ids_are_refused_together(one: int, other: str) -> None:
    """`numbers` accepts exactly the ids that `number` accepts."""
    assert numbers_of(Kind.USER, [encode(Kind.USER, one), other]) is None
