"""A search for the texts that take the most time."""

import json
import statistics
import time
import unicodedata
from pathlib import Path

import pytest
import regex
from hypothesis import HealthCheck, assume, given, settings, target

from graph.text.entities import entities_of
from graph.text.terms import terms_of
from tests.graph.text.typed import typed_texts

INPUTS = json.loads(Path(__file__).with_name("inputs.json").read_text("utf-8"))
LENGTH = 10_000
MOST = 10  # times the median of the table
REFUSED = regex.compile(r"\p{M}{31}")
"""Too many marks in a row, which are refused in posts."""
ROUNDS = 3000


def repeated(piece: str) -> str:
    """Return a text of 10,000 characters that repeats a piece."""
    return (piece * LENGTH)[:LENGTH]


def seconds(text: str) -> float:
    """Return the CPU time of parsing a text, per character of its compatibility form."""
    times = []
    for _ in range(3):
        started = time.process_time()
        entities_of(text)
        terms_of(text)
        times.append(time.process_time() - started)
    return min(times) * LENGTH / max(LENGTH, len(unicodedata.normalize("NFKC", text)))


def test_no_text_takes_ten_times_as_long_as_the_median_of_the_table(long_profile: bool) -> None:
    """U+FDFA expands to 18 letters, so the time is measured per character of the expanded text."""
    if not long_profile:
        pytest.skip("measures CPU time: needs --long")
    median = statistics.median(seconds(repeated(each["text"])) for each in INPUTS if each["text"])

    @settings(max_examples=ROUNDS, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(typed_texts.filter(bool))
    def search(piece: str) -> None:
        text = repeated(piece)
        assume(REFUSED.search(text) is None)
        spent = seconds(text)
        target(spent)
        assert spent < MOST * median, f"{spent / median:.1f} times the median"

    search()
