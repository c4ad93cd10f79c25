"""Requests that fail before execution: status and media type are the same for all causes, on every transport.

https://graphql.github.io/graphql-over-http/draft/#sec-Status-Codes
"""

import logging
from typing import Any

import pytest

from server.endpoint.responses import GRAPHQL_JSON
from tests.server.conftest import Api, events

pytestmark = pytest.mark.asyncio(loop_scope="module")

JSON = "application/json"
TWO = "query A { __typename } query B { __typename }"
COSTLY = (
    '{ a: user(by: {login: "x"}) { followers(first: 100) { nodes { followers(first: 100) { nodes { login } } } } } }'
)
TIMES = '{ searchPosts(filter: {keywords: ["tea"]}, since: %s) { liveCursor } }'
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "unknown operation": ({"query": TWO, "operationName": "C"}, "BAD_USER_INPUT", 'Unknown operation named "C".'),
    "unknown operation of one": ({"query": "{ __typename }", "operationName": "C"}, "BAD_USER_INPUT", 'named "C"'),
    "no operation chosen": ({"query": TWO}, "BAD_USER_INPUT", "Name one of them in 'operationName'."),
    "an empty name": ({"query": TWO, "operationName": ""}, "BAD_USER_INPUT", "Name one of them in 'operationName'."),
    "two without a name": ({"query": "{ __typename } { __typename }"}, "GRAPHQL_VALIDATION_FAILED", "anonymous"),
    "syntax": ({"query": "{"}, "GRAPHQL_PARSE_FAILED", "Syntax Error"),
    "unknown field": ({"query": "{ nothing }"}, "GRAPHQL_VALIDATION_FAILED", "Cannot query field"),
    "variables": ({"query": "query ($id: ID!) { node(id: $id) { id } }"}, "BAD_USER_INPUT", "Variable '$id'"),
    "a time of another form": ({"query": TIMES % '"yesterday"'}, "GRAPHQL_VALIDATION_FAILED", "RFC 3339"),
    "no time": (
        {"query": TIMES % '"2026-02-30T00:00:00Z"'},
        "GRAPHQL_VALIDATION_FAILED",
        "2026-02-30T00:00:00Z is not a valid date and time",
    ),
    "a number as a time": ({"query": TIMES % 5}, "GRAPHQL_VALIDATION_FAILED", "RFC 3339"),
    "a variable time": (
        {"query": f"query ($t: DateTime) {TIMES % '$t'}", "variables": {"t": "2026-02-30T00:00:00Z"}},
        "BAD_USER_INPUT",
        "2026-02-30T00:00:00Z is not a valid date and time: day is out of range",
    ),
    "cost": ({"query": COSTLY}, "COST_LIMIT", "points"),
}
CASES = pytest.mark.parametrize(("body", "code", "message"), REFUSED.values(), ids=REFUSED)


@pytest.fixture
def api(shared_api: Api) -> Api:
    """Return the server of the module."""
    return shared_api


def check(errors: list[dict[str, Any]], code: str, message: str) -> None:
    """Check that the errors have this code, and that one of them has this message."""
    assert {error["extensions"]["code"] for error in errors} == {code}
    assert any(message in error["message"] for error in errors)


@CASES
@pytest.mark.parametrize(("accept", "status"), [(JSON, 200), ("*/*", 200), (GRAPHQL_JSON, 400)])
async def test_a_well_formed_request_that_is_not_executed(
    api: Api,
    body: dict[str, Any],
    code: str,
    message: str,
    accept: str,
    status: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """In plain JSON, a status other than 200 would mean that the response is not from GraphQL.

    Errors of clients are not logged as errors.
    """
    response = await api.client.post("/graphql", json=body, headers={"accept": accept})
    assert response.status_code == status
    assert response.headers["content-type"] == (GRAPHQL_JSON if accept == GRAPHQL_JSON else JSON)
    assert response.json().keys() == {"errors"}
    check(response.json()["errors"], code, message)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


@CASES
async def test_it_is_an_event_and_the_end_of_an_event_stream(
    api: Api, body: dict[str, Any], code: str, message: str
) -> None:
    headers = {"accept": "text/event-stream"}
    async with api.client.stream("POST", "/graphql", json=body, headers=headers) as response:
        assert response.status_code == 200
        refused, end = [event async for event in events(response)]
    assert refused.data.keys() == {"errors"}
    check(refused.data["errors"], code, message)
    assert (refused.name, end.name) == ("next", "complete")


@CASES
async def test_it_is_an_error_message_of_a_websocket(api: Api, body: dict[str, Any], code: str, message: str) -> None:
    """The socket stays open."""
    async with api.socket() as socket:
        await socket.send(id="1", type="subscribe", payload=body)
        answer = await socket.receive()
        assert (answer["type"], answer["id"]) == ("error", "1")
        check(answer["payload"], code, message)
        await socket.subscribe("1", "{ __typename }")
        assert (await socket.receive())["payload"] == {"data": {"__typename": "Query"}}


@pytest.mark.parametrize("accept", [JSON, GRAPHQL_JSON])
@pytest.mark.parametrize(
    ("method", "request_parts", "status"),
    [
        ("POST", {"content": b"{"}, 400),
        ("POST", {"content": b"{}"}, 400),
        ("POST", {"json": {"query": "{ __typename }", "documentId": "x"}}, 400),
        ("POST", {"json": {"documentId": "x"}}, 400),
        ("POST", {"json": {"query": "subscription { homeTimeline { cursor } }"}}, 400),
        ("POST", {"json": {"query": "{ __typename }"}, "headers": {"authorization": "Bearer x"}}, 401),
        ("POST", {"json": {"query": "{ __typename }"}, "headers": {"content-type": "text/plain"}}, 415),
        ("POST", {"content": b" " * 200_000}, 413),
        ("GET", {"params": {"query": "mutation { __typename }"}}, 405),
        ("PUT", {"json": {}}, 405),
    ],
)
async def test_other_refusals_have_the_media_type_that_the_client_accepts(
    api: Api, method: str, request_parts: dict[str, Any], status: int, accept: str
) -> None:
    headers = {"accept": accept, "content-type": JSON} | request_parts.get("headers", {})
    response = await api.client.request(method, "/graphql", **{**request_parts, "headers": headers})
    assert (response.status_code, response.headers["content-type"]) == (status, accept)
    assert response.json().keys() == {"errors"}


async def test_an_unknown_hash_of_a_persisted_query_keeps_status_200_in_plain_json(api: Api) -> None:
    """Apollo's clients expect the error with this status and type, whatever they accept."""
    body = {"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "x"}}}
    response = await api.client.post("/graphql", json=body, headers={"accept": GRAPHQL_JSON})
    assert (response.status_code, response.headers["content-type"]) == (200, JSON)
