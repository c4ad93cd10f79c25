"""Nested pages multiply: what an operation can ask for is counted before it runs."""

import time

import pytest
from graphql import parse

from server.cost import Cost
from tests.server.conftest import Api


@pytest.mark.parametrize(
    ("document", "variables", "objects"),
    [
        ("{ viewer { id } }", {}, 1),
        ("{ viewer { followers(first: 10) { nodes { login } } } }", {}, 1 + 10 * 2),
        ("{ viewer { followers(last: 10) { nodes { following(first: 5) { nodes { login } } } } } }", {}, 1 + 10 * 12),
        ("query ($n: Int!) { viewer { followers(first: $n) { nodes { id } } } }", {"n": 7}, 1 + 7 * 2),
        ("query ($n: Int = 3) { viewer { followers(first: $n) { nodes { id } } } }", {}, 1 + 3 * 2),
        ("query ($ids: [ID!]!) { nodes(ids: $ids) { id } }", {"ids": ["a", "b"]}, 2),
        ('{ nodes(ids: ["a", "b", "c"]) { ... on User { followers(first: 2) { nodes { id } } } } }', {}, 3 * 5),
        ("{ viewer { ...F } } fragment F on User { followers(first: 4) { nodes { id } } }", {}, 1 + 4 * 2),
        ("{ viewer { followers(first: 100000) { nodes { id } } } }", {}, 1 + 100 * 2),
        ("{ viewer { followers(first: -5) { nodes { id } } } }", {}, 1 + 2),
        ("query A { viewer { id } } query B { viewer { followers(first: 9) { nodes { id } } } }", {}, 1 + 9 * 2),
    ],
)
def test_objects_are_counted_by_page_sizes(document: str, variables: dict[str, object], objects: int) -> None:
    """A connection's selections count as often as its page is long."""
    assert Cost(parse(document), variables).of(None) == objects


def test_only_the_operation_that_runs_is_counted() -> None:
    """The others of its document cost nothing."""
    document = parse("query A { viewer { id } } query B { viewer { followers(first: 9) { nodes { id } } } }")
    assert Cost(document, {}).of("A") == 1


def test_counting_is_linear_in_the_document() -> None:
    """Fragments that double at each step are counted once each."""
    steps = "".join(f"fragment F{n} on User {{ ...F{n + 1} ...F{n + 1} }} " for n in range(60))
    document = parse(f"{{ viewer {{ ...F0 }} }} {steps} fragment F60 on User {{ timeline {{ id }} }}")
    start = time.process_time()
    assert Cost(document, {}).of(None) >= 10**9
    assert time.process_time() - start < 1


async def test_an_operation_that_asks_for_too_much_is_refused(api: Api) -> None:
    """The error says how much it was, what is allowed, and what to do."""
    nested = "{ viewer { followers(first: 100) { nodes { followers(first: 100) { nodes { login } } } } } }"
    error = (await api.ask(nested)).json()["errors"][0]
    assert error["extensions"]["code"] == "COST_LIMIT"
    assert error["message"] == ("The operation asks for up to 20201 objects; 20000 are allowed. Ask for smaller pages.")
    assert "errors" not in (await api.ask(nested.replace("100", "20"))).json()
