"""The checks of graphql-cop, written from their descriptions, against a server in production mode.

graphql-cop reports a weakness for each check that succeeds: https://github.com/dolevf/graphql-cop.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from graph import Graph
from server.settings import Env, Settings
from tests.server.conftest import KEY, Api, serving

QUERY = "{ viewer { login } }"
FOLLOW = "mutation { follow(input: {userIds: []}) { userErrors { code } } }"
SIGN_UP = 'mutation { signUp(input: {login: "mallory", password: "correct horse battery"}) { session { token } } }'
PAGES = ("/", "/graphql", "/graphiql", "/playground", "/console", "/altair", "/voyager", "/schema.graphql")
FORMS = (
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/plain",
    "application/graphql",
    "",
)
DEBUGGING = ("tracing", "debug", "exception", "stacktrace", "Traceback", 'File "')


@pytest.fixture
def settings(store_url: str, tmp_path: Path) -> Settings:
    """Give settings for production, with nothing else changed."""
    return Settings(env=Env.PRODUCTION, store_url=store_url, data_dir=tmp_path, secret=(KEY,), worker=False)


@pytest.fixture
async def api(settings: Settings, graph: Graph) -> AsyncIterator[Api]:
    """Serve the application in production mode."""
    async with serving(settings, graph) as api:
        yield api


def refusal(response: httpx.Response, code: str) -> str:
    """Return the message of the only error, which has this code; no data came with it."""
    body = response.json()
    (error,) = body["errors"]
    assert body.get("data") is None
    assert error["extensions"]["code"] == code
    return str(error["message"])


async def test_alias_overloading(api: Api) -> None:
    """One field under 101 aliases is refused before it is validated or executed."""
    response = await api.ask("{" + " ".join(f"alias{number}: __typename" for number in range(101)) + "}")

    assert "101 aliases" in refusal(response, "COST_LIMIT")


async def test_array_based_batching(api: Api) -> None:
    """A list of requests is refused as a whole."""
    response = await api.client.post("/graphql", json=[{"query": QUERY}] * 10)

    assert response.status_code == 400
    assert "batches are not supported" in refusal(response, "BAD_USER_INPUT")


@pytest.mark.parametrize("repeated", [10, 100])
async def test_directive_overloading_with_unknown_directives(api: Api, repeated: int) -> None:
    """An unknown directive is an error, and the number of errors is limited."""
    response = await api.ask("{ __typename " + "@aa" * repeated + " }")

    errors = response.json()["errors"]
    assert response.json().get("data") is None
    assert len(errors) <= 20
    assert errors[0]["message"] == "Unknown directive '@aa'."


async def test_directive_overloading_with_known_directives(api: Api) -> None:
    """A directive that is valid by itself may not be repeated, and a document has at most 100 of them."""
    repeated = await api.ask("{ __typename @include(if: true) @include(if: true) }")
    many = await api.ask("{" + "__typename @include(if: true) " * 101 + "}")

    assert refusal(repeated, "GRAPHQL_VALIDATION_FAILED") == (
        "The directive '@include' can only be used once at this location."
    )
    assert "101 directives" in refusal(many, "COST_LIMIT")


async def test_circular_introspection(api: Api) -> None:
    """Types of fields of types of fields: introspection is off, and its depth is limited by a rule of its own."""
    response = await api.ask("{ __schema { types { " + "fields { type { " * 8 + "name" + " } }" * 8 + " } } }")

    messages = {error["message"] for error in response.json()["errors"]}
    assert response.json().get("data") is None
    assert "Maximum introspection depth exceeded" in messages
    assert any("introspection has been disabled" in message for message in messages)


@pytest.mark.parametrize(("field", "times"), [("__typename viewer { login }", 380), ("__typename", 1100)])
async def test_field_duplication(api: Api, field: str, times: int) -> None:
    """More than a thousand selections are refused before validation, which takes linear time for the others."""
    response = await api.ask("{" + f"{field} " * times + "}")

    assert "selections" in refusal(response, "COST_LIMIT")


async def test_field_duplication_beyond_the_tokens_of_a_document(api: Api) -> None:
    """A thousand repetitions with sub-selections are not even parsed to their end."""
    response = await api.ask("{" + "viewer { login } " * 1000 + "}")

    assert "more than 2000 tokens" in refusal(response, "GRAPHQL_PARSE_FAILED")


async def test_repeated_fields_within_the_limit_are_executed_once(api: Api) -> None:
    """They are merged: the response does not grow with them."""
    response = await api.ask("{" + "viewer { login } " * 250 + "}")

    assert response.json() == {"data": {"viewer": None}}


@pytest.mark.parametrize(
    "query",
    [
        "{ viewr { login } }",
        "{ user(bye: 1) { login } }",
        "query ($x: Usr) { viewer { login } }",
        "{ __schema { directive } }",
    ],
)
async def test_field_suggestions(api: Api, query: str) -> None:
    """Errors of validation do not tell names of the schema that resemble the wrong one."""
    response = await api.ask(query)

    assert response.json()["errors"]
    assert "did you mean" not in response.text.lower()


@pytest.mark.parametrize("mutation", [FOLLOW, SIGN_UP])
async def test_mutations_by_get(api: Api, graph: Graph, mutation: str) -> None:
    """A link or an image cannot write: the answer is 405, and nothing happened."""
    response = await api.client.get("/graphql", params={"query": mutation})

    assert response.status_code == 405
    assert response.headers["allow"] == "POST"
    assert refusal(response, "BAD_USER_INPUT") == "Mutations must be posted."
    assert await graph.users.ids_of_logins(["mallory"]) == [None]


async def test_a_posted_mutation_is_executed(api: Api, graph: Graph) -> None:
    """What the checks for cross-site requests send would write, were it sent as JSON."""
    response = await api.ask(SIGN_UP)

    assert response.json()["data"]["signUp"]["session"]["token"]
    assert await graph.users.ids_of_logins(["mallory"]) != [None]


async def test_queries_by_get(api: Api) -> None:
    """They are served on purpose, as GraphQL over HTTP recommends for caches, and cannot be abused by other pages.

    A query changes nothing. A browser adds no credentials, because tokens are in `Authorization`, and the server knows
    no cookies. Without CORS headers another origin's page cannot read the response.
    """
    token = await api.token("alice")

    response = await api.client.get(
        "/graphql",
        params={"query": QUERY},
        headers={
            "cookie": f"authorization=Bearer {token}; token={token}; session={token}",
            "origin": "https://evil.example",
        },
    )

    assert response.json() == {"data": {"viewer": None}}
    assert "set-cookie" not in response.headers
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize("content_type", FORMS)
@pytest.mark.parametrize("query", [QUERY, SIGN_UP])
async def test_posts_that_a_browser_sends_without_asking(api: Api, graph: Graph, content_type: str, query: str) -> None:
    """Media types of HTML forms, which need no CORS preflight, are refused with 415, even if the body is JSON."""
    headers = {"content-type": content_type} if content_type else {}
    bodies = [urlencode({"query": query}), json.dumps({"query": query})]

    for body in bodies:
        response = await api.client.post("/graphql", content=body, headers=headers)

        assert response.status_code == 415
        assert refusal(response, "BAD_USER_INPUT") == "The body must be application/json, in UTF-8."
    assert await graph.users.ids_of_logins(["mallory"]) == [None]


async def test_a_preflight_from_another_origin(api: Api) -> None:
    """A page elsewhere asks whether it may post JSON, and is not allowed to."""
    asking = {
        "origin": "https://evil.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }

    response = await api.client.options("/graphql", headers=asking)

    assert response.status_code == 400
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize("path", PAGES)
async def test_graphiql(api: Api, path: str) -> None:
    """No page of a playground and no schema is served, whatever a browser asks for."""
    response = await api.client.get(path, headers={"accept": "text/html,application/xhtml+xml,*/*;q=0.8"})

    assert response.status_code in (400, 404)
    assert "text/html" not in response.headers["content-type"]
    for sign in ("graphiql", "playground", "graphql ide", "voyager", "altair"):
        assert sign not in response.text.lower()


@pytest.mark.parametrize(
    "query",
    [
        "{ __schema { types { name } } }",
        '{ __type(name: "User") { name } }',
        "{ ...F } fragment F on Query { __schema { types { name } } }",
    ],
)
async def test_introspection(api: Api, query: str) -> None:
    """The schema cannot be asked for, directly or through a fragment."""
    response = await api.ask(query)

    assert response.json().get("data") is None
    assert "introspection has been disabled" in response.json()["errors"][0]["message"]


@pytest.mark.parametrize("query", [QUERY, "{ unknown }", "{", '{ node(id: "x") { id } }'])
@pytest.mark.parametrize(
    "headers", [{}, {"x-apollo-tracing": "1", "x-debug": "1", "apollo-federation-include-trace": "ftv1"}]
)
async def test_trace_mode(api: Api, query: str, headers: dict[str, str]) -> None:
    """No response has timings, stack traces or other extensions for debugging, even if a header asks for them."""
    response = await api.client.post(
        "/graphql", json={"query": query, "extensions": {"tracing": True}}, headers=headers
    )

    assert not response.json().get("extensions")
    assert not [sign for sign in DEBUGGING if sign in response.text]


@pytest.mark.parametrize(
    "body",
    [
        {"query": "qwerty { abc }"},
        {"query": "{ viewer "},
        {"query": "query ($id: ID!) { node(id: $id) { id } }", "variables": {"id": {}}},
        {"query": QUERY, "operationName": "Missing"},
        {"query": QUERY, "variables": []},
        {"query": 1},
        {},
    ],
)
async def test_unhandled_errors(api: Api, body: dict[str, Any]) -> None:
    """Whatever is wrong with a request is the client's error, with a code and no traces of the program."""
    response = await api.client.post("/graphql", json=body)

    assert response.status_code < 500
    assert all(error["extensions"]["code"] != "INTERNAL" for error in response.json()["errors"])
    assert not [sign for sign in DEBUGGING if sign in response.text]
