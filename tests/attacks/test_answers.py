"""Queries for the largest responses: accepted ones are small and cheap, others are refused before execution."""

import itertools
from collections.abc import Iterator
from functools import partial

from tests.attacks.bounds import ANSWER, Bounds, assert_within
from tests.attacks.candidates import Candidate, candidates
from tests.attacks.victim import MEGABYTE, Victim, ask


def accepted(victim: Victim, query: str) -> int | None:
    """Send a query and return the size of its response, or None if it is refused."""
    with victim.client() as client:
        answer = ask(client, query)
    assert answer.status_code < 500
    return len(answer.content) if answer.content.startswith(b'{"data":{') else None


def salted(victim: Victim, query: str, attempt: int) -> int | None:
    """Send a query in a form that the server has not seen."""
    return accepted(victim, f"{query} #{attempt}")


def test_x03_the_largest_queries(victim: Victim, bounds: Bounds, calls: Iterator[int]) -> None:
    """X3: a 1.5 KB query of `text` under 100 aliases returned 571 MB. Queries here have the largest accepted pages."""
    written = candidates(victim.world)
    names = sorted(written)
    for name in itertools.takewhile(lambda call: call < len(names), calls):
        print(names[name])
        check_largest(victim, bounds, written[names[name]])


def check_largest(victim: Victim, bounds: Bounds, write: Candidate) -> None:
    """Assert that the largest accepted page of a query is small and cheap, and that larger ones are refused."""
    low, high = 0, 101
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if accepted(victim, write(middle)) is not None else (low, middle)
    print(f"pages of {low}")
    if low:

        def largest(attempt: int) -> None:
            size = salted(victim, write(low), attempt)
            assert size is not None
            assert size <= ANSWER

        spent = assert_within(victim, bounds.anonymous, largest)
        assert spent.grown <= 8 * MEGABYTE
    if high <= 100:
        for size in {high, 100}:
            assert_within(victim, bounds.refusal, partial(salted, victim, write(size)))


def test_x03_answers_leave_no_memory_behind(victim: Victim) -> None:
    """X3: the process kept 743 MB after one response."""
    written = candidates(victim.world)
    before = victim.resources(collect=True).rss
    for name in ("15 timelines of texts under 100 aliases", "texts under 100 aliases", "posts with everything"):
        for size in (5, 20, 95):
            accepted(victim, written[name](size))
    grown = victim.resources(collect=True).rss - before
    print(f"{grown / MEGABYTE:.1f} MB more")
    assert grown <= 40 * MEGABYTE


def test_x03_the_size_of_an_answer_is_bounded_on_streams_too(victim: Victim) -> None:
    """X3: server-sent events have the same limit."""
    query = candidates(victim.world)["texts under 100 aliases"](100)
    size = 0
    with (
        victim.client() as client,
        client.stream("POST", "/graphql", json={"query": query}, headers={"accept": "text/event-stream"}) as response,
    ):
        for part in response.iter_bytes():
            size += len(part)
    assert size <= ANSWER
