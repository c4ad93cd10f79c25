"""Pieces from which tests build texts: signs, parts of addresses, words in many scripts, and invisible characters."""

from hypothesis import strategies as st

SIGNS = "# ＃ @ https:// :// . ． 。 / ? & : = - _ + ]( ~ %2e · ״ ' ( ) [ ] * , 。"
WORDS = "a A1 ab a@b.c a.bc/ localhost 1.2.3.4 example.org münchen.de é e\u0301 İ ß 北 한 ก א п ﬁ ℀ ½ ㍿ 😀"
UNSEEN = "\u0301 \u0345\u0323 \u1161 \u200b \u200d \u2060 \ufe0f \u202e"
PIECES = [*SIGNS.split(" "), *WORDS.split(" "), *UNSEEN.split(" "), " "]

typed_texts = st.lists(st.sampled_from(PIECES) | st.characters(exclude_categories=["Cs"]), max_size=12).map("".join)
