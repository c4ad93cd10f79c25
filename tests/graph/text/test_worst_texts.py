"""A search for the texts that take the longest."""

import json
import statistics
import time
import unicodedata
from pathlib import Path

import pytest
import regex
from hypothesis import HealthCheck, assume, given, settings, target
from hypothesis import strategies as st

from graph.text.entities import entities_of
from graph.text.terms import terms_of

INPUTS = json.loads(Path(__file__).with_name("inputs.json").read_text("utf-8"))
LENGTH = 10_000
MOST = 10  # times the median of the table
SIGNS = "# ＃ @ https:// :// . ． 。 / ? & : = - _ + ]( ~ %2e · ״ '"
WORDS = "a A1 a@b.c a.bc/ localhost 1.2.3.4 münchen.de é e\u0301 İ ß 北 한 ก א п ﬁ ℀ ½ ㍿ 😀"
UNSEEN = "\u0301 \u0345\u0323 \u1161 \u200b \u200d \ufe0f \u202e"
PIECES = [*SIGNS.split(" "), *WORDS.split(" "), *UNSEEN.split(" "), " "]
REFUSED = regex.compile(r"\p{M}{31}")
"""Too many marks in a row, which no post has."""
ROUNDS = 3000


def repeated(piece: str) -> str:
    """Return a text of 10,000 characters of the same."""
    return (piece * LENGTH)[:LENGTH]


def seconds(text: str) -> float:
    """Return the CPU time of the parsing of a text, for each character of its compatibility form."""
    times = []
    for _ in range(3):
        started = time.process_time()
        entities_of(text)
        terms_of(text)
        times.append(time.process_time() - started)
    return min(times) * LENGTH / max(LENGTH, len(unicodedata.normalize("NFKC", text)))


def test_no_text_takes_ten_times_as_long_as_the_median_of_the_table(long_profile: bool) -> None:
    """U+FDFA stands for 18 letters, so the time is counted by what a text stands for."""
    if not long_profile:
        pytest.skip("measures CPU time: needs --long")
    median = statistics.median(seconds(repeated(each["text"])) for each in INPUTS if each["text"])

    @settings(max_examples=ROUNDS, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(st.lists(st.sampled_from(PIECES) | st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8))
    def search(pieces: list[str]) -> None:
        text = repeated("".join(pieces))
        assume(REFUSED.search(text) is None)
        spent = seconds(text)
        target(spent)
        assert spent < MOST * median, f"{spent / median:.1f} times the median"

    search()
