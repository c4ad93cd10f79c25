"""Attacks with documents and variables: each costs at most what a refusal may cost."""

import base64
import json
from typing import Any

import pytest

from tests.attacks.bounds import Bounds, assert_within
from tests.attacks.clients import exchange, open_socket, request, run_on_socket, streamed
from tests.attacks.payloads import LARGE, NODES, OVERLAPS
from tests.attacks.victim import GRAPHQL, Victim
from tests.attacks.world import LOUD

TRANSPORTS = ("http", "sse", "websocket")
DIGITS = "9" * 5_000


def send(victim: Victim, transport: str, query: str, variables: object = None) -> str:
    """Send an operation over a transport and return the response as text."""
    if transport == "websocket":
        with open_socket(victim) as opened:
            return json.dumps(run_on_socket(opened, query, variables))
    body = {"query": query, "variables": variables}
    content = streamed(query, variables) if transport == "sse" else request(body)
    answer = exchange(victim, content)
    assert answer is not None, "the server closed the connection without an answer"
    assert answer.status < 500
    return answer.body.decode()


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("size", [8_000, 15_000])
def test_x01_lines_times_invalid_variables(victim: Victim, bounds: Bounds, transport: str, size: int) -> None:
    """X1: 8,000 newlines and 8,000 invalid variables occupied a process for 20 seconds."""

    def attack(attempt: int) -> None:
        answer = send(victim, transport, "\n" * size + NODES + f"#{attempt}", {"ids": [{}] * size})
        assert '"message"' in answer
        assert len(answer) < 50_000

    assert_within(victim, bounds.refusal, attack)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_x01_lines_times_unknown_fields(victim: Victim, bounds: Bounds, transport: str) -> None:
    """X1: validation errors are limited as errors of variables are, and their locations are just as cheap."""

    def attack(attempt: int) -> None:
        query = "\n" * 40_000 + "{" + " ".join(f"nothing{attempt}{index}" for index in range(490)) + "}"
        assert '"message"' in send(victim, transport, query)

    assert_within(victim, bounds.refusal, attack)


def an_id(numbers: str) -> str:
    """Return a global id with these numbers."""
    return base64.urlsafe_b64encode(f"User:{numbers}".encode()).decode().rstrip("=")


HUGE: dict[str, tuple[str, Any]] = {
    "a global id": ("query ($id: ID!) { node(id: $id) { id } }", {"id": an_id(DIGITS)}),
    "one of many global ids": (NODES, {"ids": [an_id(DIGITS)]}),
    "a relationship's second number": (NODES, {"ids": [an_id(f"1:{DIGITS}").replace("VXNlc", "UmVsY")]}),
    "an id by user": ("query ($id: ID!) { user(by: {id: $id}) { id } }", {"id": an_id(DIGITS)}),
    "a bare id": ("query ($id: ID!) { post(id: $id) { id } }", {"id": DIGITS}),
    "a page size in the document": (
        f'{{ user(by: {{login: "{LOUD}"}}) {{ followers(first: {DIGITS}) {{ totalCount }} }} }}',
        None,
    ),
    "an id in the document": (f"{{ node(id: {DIGITS}) {{ id }} }}", None),
    "ids in the document": (f"{{ nodes(ids: {DIGITS}) {{ id }} }}", None),
    "a list of ids in the document": (f"{{ nodes(ids: [{DIGITS}]) {{ id }} }}", None),
    "a float in the document": (
        f"subscription {{ events(filter: {{sample: {DIGITS}.0, firehose: true}}) {{ cursor }} }}",
        None,
    ),
    "a cursor": (
        'query ($after: String) { user(by: {login: "loud"}) { followers(first: 1, after: $after) { totalCount } } }',
        {"after": base64.urlsafe_b64encode(f"f{DIGITS}".encode()).decode()},
    ),
    "the id of a timeline": ("subscription ($id: ID!) { timeline(timelineId: $id) { cursor } }", {"id": an_id(DIGITS)}),
    "the id of a thread": ("subscription ($id: ID!) { thread(postId: $id) { cursor } }", {"id": DIGITS}),
    "a cursor of events": (
        'subscription ($after: String) { events(filter: {keywords: ["a"]}, after: $after) { cursor } }',
        {"after": DIGITS},
    ),
}


@pytest.mark.parametrize("name", HUGE)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_x12_numbers_of_5000_digits(victim: Victim, bounds: Bounds, name: str, transport: str) -> None:
    """X12: an id of 5,000 digits caused a 5xx response, and a traceback in the log."""
    query, variables = HUGE[name]
    spent = assert_within(
        victim, bounds.refusal, lambda attempt: send(victim, transport, f"{query} #{attempt}", variables)
    )
    assert spent.logged < 500
    assert "Traceback" not in victim.log()


def test_x12_numbers_of_5000_digits_in_json(victim: Victim, bounds: Bounds) -> None:
    """X12: JSON numbers that exceed all integer types are refused in bodies, parameters and messages."""
    body = b'{"query": "query ($first: Int) { viewer { id } }", "variables": {"first": %s}}' % DIGITS.encode()

    def attack(attempt: int) -> None:
        posted = exchange(victim, request(body))
        gotten = exchange(
            victim, request(method="GET", path=f"{GRAPHQL}?query={{viewer{{id}}}}&variables={{%22a%22:{DIGITS}}}")
        )
        assert posted is not None
        assert gotten is not None
        assert {posted.status, gotten.status} <= {200, 400, 414, 431}

    assert_within(victim, 2 * bounds.refusal, attack)


@pytest.mark.parametrize("name", OVERLAPS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_x14_selections_that_overlap(victim: Victim, bounds: Bounds, name: str, transport: str) -> None:
    """X14: 248 repeated or conflicting fields took 94 to 166 ms to validate, and twice that over SSE and WebSocket."""
    query = OVERLAPS[name]
    assert_within(victim, bounds.refusal, lambda attempt: send(victim, transport, f"{query} #{attempt}"))


@pytest.mark.parametrize("name", LARGE)
def test_x14_large_documents(victim: Victim, bounds: Bounds, name: str) -> None:
    """X14: a new document of a thousand fields cost as much as 100 to 140 plain requests, most of it validation."""
    query = LARGE[name]
    assert_within(victim, bounds.document, lambda attempt: send(victim, "http", f"{query} #{attempt}"))
