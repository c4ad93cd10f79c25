"""Commands packed for many keys at once are those packed one by one."""

from hypothesis import given
from hypothesis import strategies as st

from graph.store.reads import CACHING, pack, pack_each

words = st.lists(st.text(), max_size=3).map(tuple)


@given(st.lists(st.text() | st.text("ab{}", min_size=3, max_size=3)), words, st.sampled_from(("", CACHING)))
def test_commands_for_each_key(keys: list[str], words: tuple[str, ...], before: str) -> None:
    """Keys of one length take a shorter way."""
    one_by_one = b"".join(before.encode() + pack(("GET", key, *words)) for key in keys)

    assert pack_each("GET", keys, words, before) == one_by_one
