"""Tests of packing commands for many keys at once, and of the errors that show that a slot is moving."""

from hypothesis import given
from hypothesis import strategies as st
from redis import exceptions

from graph.store.outages import ELSEWHERE
from graph.store.reads import CACHING, is_moving, pack, pack_each

words = st.lists(st.text(), max_size=3).map(tuple)


@given(st.lists(st.text() | st.text("ab{}", min_size=3, max_size=3)), words, st.sampled_from(("", CACHING)))
def test_commands_for_each_key(keys: list[str], words: tuple[str, ...], before: str) -> None:
    """Keys of the same length take a faster path."""
    one_by_one = b"".join(before.encode() + pack(("GET", key, *words)) for key in keys)

    assert pack_each("GET", keys, words, before) == one_by_one


def test_only_keys_that_are_elsewhere_tell_that_a_slot_moves() -> None:
    assert is_moving(exceptions.AskError("1 127.0.0.1:7000"))
    assert is_moving(exceptions.ResponseError(f"Script attempted to access a {ELSEWHERE} in a cluster node"))
    assert not is_moving(exceptions.MovedError("1 127.0.0.1:7000"))
    assert not is_moving(exceptions.ResponseError("WRONGTYPE Operation against a key"))
