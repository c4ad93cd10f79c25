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
from server.setting_values import Env
from server.settings import Settings
from tests.server.conftest import KEY, Api, serving
from tests.support.graphs import archive_url_of

QUERY = "{ viewer { user { login } } }"
FOLLOW = "mutation { followUsers(input: {userIds: []}) { userErrors { code } } }"
SIGN_UP = 'mutation { signUp(input: {login: "mallory", password: "correct horse battery"}) { credentials { token } } }'
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
    """Return the settings for production, with all other settings at their defaults."""
    return Settings(
        env=Env.PRODUCTION,
        store_url=store_url,
        archive_url=archive_url_of(store_url),
        data_dir=tmp_path,
        secret=(KEY,),
        worker=False,
    )


@pytest.fixture
async def api(settings: Settings, graph: Graph) -> AsyncIterator[Api]:
    """Serve the application in production mode."""
    async with serving(settings, graph) as api:
        yield api


def refusal(response: httpx.Response, code: str) -> str:
    """Return the message of a response's only error, which must have this code. There must be no data."""
    body = response.json()
    (error,) = body["errors"]
    assert body.get("data") is None
    assert error["extensions"]["code"] == code
    return str(error["message"])


async def test_alias_overloading(api: Api) -> None:
    """One field under 101 aliases is refused before validation and execution."""
    response = await api.ask("{" + " ".join(f"alias{number}: __typename" for number in range(101)) + "}")

    assert "101 aliases" in refusal(response, "COST_LIMIT")


async def test_array_based_batching(api: Api) -> None:
    """A list of requests is refused."""
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
    """A valid directive may not be repeated, and a document has at most 100 directives."""
    repeated = await api.ask("{ __typename @include(if: true) @include(if: true) }")
    many = await api.ask("{" + "__typename @include(if: true) " * 101 + "}")

    assert refusal(repeated, "GRAPHQL_VALIDATION_FAILED") == (
        "The directive '@include' can only be used once at this location."
    )
    assert "101 directives" in refusal(many, "COST_LIMIT")


async def test_circular_introspection(api: Api) -> None:
    """Fields of types of fields: introspection is off, and a separate rule limits its depth."""
    response = await api.ask("{ __schema { types { " + "fields { type { " * 8 + "name" + " } }" * 8 + " } } }")

    messages = {error["message"] for error in response.json()["errors"]}
    assert response.json().get("data") is None
    assert "Maximum introspection depth exceeded" in messages
    assert any("introspection has been disabled" in message for message in messages)


@pytest.mark.parametrize(("field", "times"), [("__typename viewer { id }", 380), ("__typename", 1100)])
async def test_field_duplication(api: Api, field: str, times: int) -> None:
    """More than 1,000 selections are refused before validation, and validation of fewer takes linear time."""
    response = await api.ask("{" + f"{field} " * times + "}")

    assert "selections" in refusal(response, "COST_LIMIT")


async def test_field_duplication_beyond_the_tokens_of_a_document(api: Api) -> None:
    """A thousand repetitions with sub-selections are refused by the parser."""
    response = await api.ask("{" + "viewer { id } " * 1000 + "}")

    assert "more than 2000 tokens" in refusal(response, "GRAPHQL_PARSE_FAILED")


async def test_repeated_fields_within_the_limit_are_executed_once(api: Api) -> None:
    """Repeated fields are merged, so that the response does not grow."""
    response = await api.ask("{" + "viewer { id } " * 250 + "}")

    assert response.json() == {"data": {"viewer": None}}


@pytest.mark.parametrize(
    "query",
    [
        "{ viewr { login } }",
        "{ user(bye: 1) { login } }",
        "query ($x: Usr) { viewer { user { login } } }",
        "{ __schema { directive } }",
    ],
)
async def test_field_suggestions(api: Api, query: str) -> None:
    """Validation errors do not suggest names of the schema."""
    response = await api.ask(query)

    assert response.json()["errors"]
    assert "did you mean" not in response.text.lower()


@pytest.mark.parametrize("mutation", [FOLLOW, SIGN_UP])
async def test_mutations_by_get(api: Api, graph: Graph, mutation: str) -> None:
    """A link or an image cannot write: the response is 405, and nothing changes."""
    response = await api.client.get("/graphql", params={"query": mutation})

    assert response.status_code == 405
    assert response.headers["allow"] == "POST"
    assert refusal(response, "BAD_USER_INPUT") == "Mutations must be sent with POST."
    assert await graph.users.ids_of_logins(["mallory"]) == [None]


async def test_a_posted_mutation_is_executed(api: Api, graph: Graph) -> None:
    """The mutations in the tests for cross-site requests would succeed if sent as JSON."""
    response = await api.ask(SIGN_UP)

    assert response.json()["data"]["signUp"]["credentials"]["token"]
    assert await graph.users.ids_of_logins(["mallory"]) != [None]


async def test_queries_by_get(api: Api) -> None:
    """Queries by GET are allowed, as GraphQL over HTTP recommends for caches, and other sites cannot abuse them.

    A query changes nothing. A browser adds no credentials, because tokens are in `Authorization` and the server uses no
    cookies. Without CORS headers, a page from another origin cannot read the response.
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
async def test_posts_without_a_cors_preflight(api: Api, graph: Graph, content_type: str, query: str) -> None:
    """Media types of HTML forms need no CORS preflight. They are refused with 415, even if the body is JSON."""
    headers = {"content-type": content_type} if content_type else {}
    bodies = [urlencode({"query": query}), json.dumps({"query": query})]

    for body in bodies:
        response = await api.client.post("/graphql", content=body, headers=headers)

        assert response.status_code == 415
        assert refusal(response, "BAD_USER_INPUT") == "The body must have the content type application/json, in UTF-8."
    assert await graph.users.ids_of_logins(["mallory"]) == [None]


async def test_a_preflight_from_another_origin(api: Api) -> None:
    """A page from another origin may not post JSON."""
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
    """Neither the playground nor the schema is served."""
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
    """The schema cannot be queried, directly or in a fragment."""
    response = await api.ask(query)

    assert response.json().get("data") is None
    assert "introspection has been disabled" in response.json()["errors"][0]["message"]


@pytest.mark.parametrize("query", [QUERY, "{ unknown }", "{", '{ node(id: "x") { id } }'])
@pytest.mark.parametrize(
    "headers", [{}, {"x-apollo-tracing": "1", "x-debug": "1", "apollo-federation-include-trace": "ftv1"}]
)
async def test_trace_mode(api: Api, query: str, headers: dict[str, str]) -> None:
    """No response has timings, stack traces or debug extensions, even if a header requests them."""
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
    """Every invalid request is a client error, with a code and without internal details."""
    response = await api.client.post("/graphql", json=body)

    assert response.status_code < 500
    assert all(error["extensions"]["code"] != "INTERNAL" for error in response.json()["errors"])
    assert not [sign for sign in DEBUGGING if sign in response.text]
