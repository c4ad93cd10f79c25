"""The short way of a posted request, and that it comes out where the long way does."""

import json
from typing import Any

import httpx
import pytest

from server.auth import MAX_TOKEN
from server.operations.documents import Documents
from tests.server.conftest import Api

LOG_OUT = "mutation { logOut(input: {}) { userErrors { code } } }"
PAGE = "followers(first: %s) { nodes { %s } }"
DEEP = "{ viewer { " + PAGE % ("%s", PAGE % ("%s", PAGE % (100, "login"))) + " } }"
LONG_WAY = {"origin": "https://elsewhere.example"}

REQUESTS: dict[str, dict[str, Any]] = {
    "a query": {"json": {"query": "{ viewer { login } }"}},
    "an error in the data": {"json": {"query": '{ __typename node(id: "?") { id } }'}},
    "a syntax error": {"json": {"query": "{"}},
    "an unknown field": {"json": {"query": "{ wrong }"}},
    "the newer media type": {
        "json": {"query": "{ wrong }"},
        "headers": {"accept": "application/graphql-response+json"},
    },
    "introspection": {"json": {"query": "{ __schema { queryType { name } } }"}},
    "an unknown operation": {"json": {"query": "query A { __typename }", "operationName": "B"}},
    "a subscription": {"json": {"query": "subscription { homeTimeline { cursor } }"}},
    "no query": {"json": {}},
    "a list": {"json": [{"query": "{ __typename }"}]},
    "no JSON": {"content": b"{", "headers": {"content-type": "application/json"}},
    "another type": {"content": b"{}", "headers": {"content-type": "text/plain"}},
    "a bad token": {"json": {"query": "{ __typename }"}, "headers": {"authorization": "Bearer x"}},
    "variables that do not fit": {"json": {"query": "query ($n: Int!) { __typename }", "variables": {"n": "x"}}},
}


def shown(response: httpx.Response) -> tuple[Any, ...]:
    """Give what two ways must agree on: all but the request's own id."""
    body = response.json()
    for error in body.get("errors", []):
        error["extensions"].pop("requestId")
    kept = ("content-type", "www-authenticate", "allow", "vary")
    return response.status_code, {name: response.headers.get(name) for name in kept}, json.dumps(body)


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
async def test_both_ways_answer_alike(api: Api, request_: dict[str, Any]) -> None:
    """A request from another origin's page takes the long way."""
    headers = {"authorization": f"Bearer {await api.token('alice')}", **request_.get("headers", {})}
    given = {**request_, "headers": headers}
    short = await api.client.post("/graphql", **given)
    long = await api.client.post("/graphql", **{**given, "headers": {**headers, **LONG_WAY}})
    assert shown(short) == shown(long)
    assert short.headers["x-request-id"]


async def test_both_ways_tell_of_an_ended_session(api: Api) -> None:
    """401, with a challenge."""
    token = await api.token("alice")
    await api.ask(LOG_OUT, token)
    asked = {"json": {"query": "{ __typename }"}}
    headers = {"authorization": f"Bearer {token}"}
    short = await api.client.post("/graphql", **asked, headers=headers)
    long = await api.client.post("/graphql", **asked, headers={**headers, **LONG_WAY})
    assert shown(short) == shown(long)
    assert short.status_code == 401
    assert short.headers["www-authenticate"].startswith("Bearer")


async def test_a_header_that_comes_twice_is_read_alike(api: Api) -> None:
    """Of two tokens, the first counts on both ways, as it does for whoever stands in front."""
    first, second = await api.token("alice"), await api.token("bob")
    for origin in ([], [("origin", "https://elsewhere.example")]):
        headers = [("authorization", f"Bearer {first}"), ("authorization", f"Bearer {second}"), *origin]
        answer = await api.client.post("/graphql", json={"query": "{ viewer { login } }"}, headers=headers)
        assert answer.json()["data"]["viewer"]["login"] == "alice"


async def test_an_authorization_of_any_length_is_not_kept(api: Api) -> None:
    """White space around a good token does not make it another one to remember."""
    token = await api.token("alice")
    tokens = api.endpoint._tokens
    for spaces in range(1, 5):
        answer = await api.client.post(
            "/graphql", json={"query": "{ __typename }"}, headers={"authorization": "Bearer" + " " * spaces + token}
        )
        assert answer.status_code == 200
    assert list(tokens._read) == [token]
    too_long = {"authorization": "Bearer" + " " * MAX_TOKEN + token}
    assert (await api.client.post("/graphql", json={"query": "{ __typename }"}, headers=too_long)).status_code == 401


@pytest.mark.parametrize(
    "asked",
    [
        {"query": DEEP % (100, 100), "operationName": ""},
        {"query": "query D($n: Int!) " + DEEP % ("$n", "$n"), "variables": {"n": 100.0}},
    ],
    ids=["an empty name of an operation", "sizes that are written as floats"],
)
async def test_nothing_passes_the_cost_limit_by(api: Api, asked: dict[str, Any]) -> None:
    """What asks for two million objects is refused however it is put."""
    answer = await api.client.post("/graphql", json=asked)
    assert [error["extensions"]["code"] for error in answer.json()["errors"]] == ["COST_LIMIT"]


async def test_a_document_that_is_no_longer_kept_has_no_plan(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plans of many large documents do not pile up."""
    monkeypatch.setattr("server.operations.documents.KEPT_TOKENS", 1_000)
    executor, documents = api.endpoint.execution.executor, api.endpoint.execution.preparation.documents
    assert executor is not None
    assert isinstance(documents, Documents)
    for number in range(20):
        await api.ask(f"{{ __typename }} # {number}" + "x" * 60_000)
    assert len(executor._plan_cache) == len(documents._kept) < 10
