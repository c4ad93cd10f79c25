"""GraphQL over HTTP: statuses, error codes, authentication and limits."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from strawberry.types import ExecutionResult

from graph import Graph
from server.auth import Tokens
from server.embedded import EmbeddedStore
from server.endpoint.responses import render
from server.errors import Refused
from server.settings import Settings
from tests.server.conftest import KEY, Api, serving
from tests.support.graph_worlds import PATIENCE, reconnected
from tests.support.graphs import archive_url_of

GRAPHQL_JSON = "application/graphql-response+json"
FOLLOW = "mutation { followUsers(input: {userIds: []}) { results { outcome } userErrors { code } } }"


def error_of(response: httpx.Response) -> tuple[str, str]:
    """Return the code and message of the only error, whose request id must be that of the response."""
    (error,) = response.json()["errors"]
    assert error["extensions"]["requestId"] == response.headers["x-request-id"]
    return error["extensions"]["code"], error["message"]


async def test_a_query_with_variables(api: Api) -> None:
    await api.session("alice")
    response = await api.ask("query ($x: String!) { user(by: {login: $x}) { login } }", x="alice")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.json() == {"data": {"user": {"login": "alice"}}}


async def test_a_query_by_get(api: Api) -> None:
    """The variables are sent as JSON."""
    await api.session("alice")
    query = "query Who($x: String!) { user(by: {login: $x}) { login } }"
    parameters = {"query": query, "variables": '{"x":"alice"}', "operationName": "Who"}
    response = await api.client.get("/graphql", params=parameters)
    assert response.json() == {"data": {"user": {"login": "alice"}}}


async def test_one_of_several_operations_is_chosen_by_name(api: Api) -> None:
    """The other operations of the document are not executed."""
    body = {"query": "query A { a: __typename } query B { b: __typename }", "operationName": "B"}
    response = await api.client.post("/graphql", json=body)
    assert response.json() == {"data": {"b": "Query"}}


async def test_a_mutation_by_get_is_refused(api: Api) -> None:
    response = await api.client.get("/graphql", params={"query": FOLLOW})
    assert response.status_code == 405
    assert response.headers["allow"] == "POST"
    assert error_of(response) == ("BAD_USER_INPUT", "Mutations must be sent with POST.")


async def test_a_subscription_by_plain_post_is_refused(api: Api) -> None:
    """The message names the transports for subscriptions."""
    response = await api.ask("subscription { homeTimeline { cursor } }")
    assert response.status_code == 400
    assert "graphql-transport-ws" in error_of(response)[1]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "The body is not valid JSON"),
        (b"{", "The body is not valid JSON"),
        (b'{"query": "{ viewer { id } }", "variables": {"x": "\xff"}}', "valid UTF-8"),
        (b'{"query": "{ viewer { id } }", "variables": {"x": "\\ud800"}}', "surrogate"),
        (b"[" * 100_000, "depth limit"),
        (b'{"query": "{ viewer { id } }", "variables": {"x": ' + b"1" * 5000 + b"}}", "infinity"),
        (b'{"query": "{ viewer { id } }", "variables": {"x": NaN}}', "The body is not valid JSON"),
        (b"[]", "batches are not supported"),
        (b'"{ viewer { id } }"', "one JSON object"),
        (b"null", "one JSON object"),
        (b"{}", "neither a 'query' nor a 'documentId'"),
        (b'{"query": ""}', "neither a 'query' nor a 'documentId'"),
        (b'{"query": 7}', "'query' must be a string"),
        (b'{"query": "{ viewer { id } }", "variables": []}', "'variables' must be an object"),
        (b'{"query": "{ viewer { id } }", "operationName": 1}', "'operationName' must be a string"),
        (b'{"query": "{ viewer { id } }", "extensions": "x"}', "'extensions' must be an object"),
    ],
)
async def test_an_invalid_body_is_refused_with_400(api: Api, body: bytes, message: str) -> None:
    """Invalid encodings, huge numbers and wrong types never reach a resolver."""
    response = await api.client.post("/graphql", content=body, headers={"content-type": "application/json"})
    assert response.status_code == 400
    code, found = error_of(response)
    assert code == "BAD_USER_INPUT"
    assert message in found


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "", "multipart/form-data"])
async def test_only_json_is_accepted(api: Api, content_type: str) -> None:
    """This prevents forms on other sites from posting to the API."""
    body = b'{"query": "{ viewer { id } }"}'
    response = await api.client.post("/graphql", content=body, headers={"content-type": content_type})
    assert response.status_code == 415


async def test_a_body_beyond_the_limit_is_refused(api: Api) -> None:
    """It is refused with or without Content-Length. Pages of other origins can read the response."""
    large = json.dumps({"query": "{ viewer { id } }" + " " * 300_000}).encode()

    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(large), 10_000):
            yield large[start : start + 10_000]

    for content in (large, parts()):
        headers = {"content-type": "application/json", "origin": api.url}
        response = await api.client.post("/graphql", content=content, headers=headers)
        assert response.status_code == 413
        assert error_of(response) == (
            "BAD_USER_INPUT",
            "The body exceeds the limit of 100,000 bytes. Send a smaller request.",
        )


def test_a_response_beyond_the_limit_is_refused() -> None:
    """A result larger than its computed size, which introspection can produce, is not sent."""
    result = ExecutionResult({"viewer": {"user": {"login": "alice"}}}, None)
    assert render(result, "application/json", 100).status == 200
    with pytest.raises(Refused, match="The response has 46 bytes; the limit is 45") as refused:
        render(result, "application/json", 45)
    assert (refused.value.status, refused.value.code) == (200, "COST_LIMIT")
    with pytest.raises(Refused) as refused:
        render(result, GRAPHQL_JSON, 45)
    assert refused.value.status == 400


async def test_methods_other_than_get_and_post_are_refused(api: Api) -> None:
    """The response is 405 with the allowed methods."""
    response = await api.client.put("/graphql", json={})
    assert response.status_code == 405
    assert response.headers["allow"] == "GET, POST"


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ("{ viewer { id }", "GRAPHQL_PARSE_FAILED"),
        ('{ user(by: {login: "\\ud800"}) { id } }', "GRAPHQL_PARSE_FAILED"),
        ("{" + "viewer{" * 2000, "GRAPHQL_PARSE_FAILED"),
        ("{" + "a" * 10 + "}" * 3100, "GRAPHQL_PARSE_FAILED"),
        ("{ nobody { id } }", "GRAPHQL_VALIDATION_FAILED"),
        ("query ($id: ID!) { post(id: $id) { id } }", "BAD_USER_INPUT"),
        ("query A { __typename } query B { __typename }", "BAD_USER_INPUT"),
        ("{ viewer { id } } " + "{ viewer { id } }", "GRAPHQL_VALIDATION_FAILED"),
        ("{ post(id: " + "9" * 2000 + ") { id } }", "BAD_USER_INPUT"),
    ],
)
async def test_invalid_documents_have_error_codes(api: Api, document: str, code: str) -> None:
    """Errors of parsing, validation and variables have codes. With the GraphQL media type, the status is 400."""
    headers = {"accept": GRAPHQL_JSON}
    response = await api.client.post("/graphql", json={"query": document}, headers=headers)
    assert response.json()["errors"][0]["extensions"]["code"] == code
    if "data" not in response.json():
        assert response.status_code == 400


async def test_an_error_of_a_field_leaves_other_fields_intact(api: Api) -> None:
    """The status stays 200."""
    await api.session("alice")
    response = await api.ask('{ user(by: {login: "alice"}) { login followers { totalCount } } }')
    assert response.status_code == 200
    assert response.json()["data"] == {"user": {"login": "alice", "followers": None}}
    assert error_of(response)[0] == "BAD_USER_INPUT"


async def test_internal_errors_are_masked(api: Api, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    """The response contains only the request id; the log contains the id and the cause."""

    async def broken(*_: object) -> None:
        raise RuntimeError("the password is hunter2")

    monkeypatch.setattr(api.app.state.graph.users, "ids_of_logins", broken)
    response = await api.ask('{ user(by: {login: "alice"}) { login } }')
    code, message = error_of(response)
    assert code == "INTERNAL"
    assert "hunter2" not in response.text
    assert response.headers["x-request-id"] in message
    assert response.headers["x-request-id"] in caplog.text
    assert "hunter2" in caplog.text


async def test_clients_may_set_the_request_id(api: Api) -> None:
    """A valid id is used, so logs of several services can be correlated; an invalid one is replaced."""
    kept = await api.client.get("/health/live", headers={"x-request-id": "abc-123"})
    assert kept.headers["x-request-id"] == "abc-123"
    replaced = await api.client.get("/health/live", headers={"x-request-id": "a b<script>"})
    assert len(replaced.headers["x-request-id"]) == 16


# Authentication


async def test_the_viewer_is_the_user_of_the_token(api: Api) -> None:
    response = await api.ask("{ viewer { user { login } } }", await api.token("alice"))
    assert response.json() == {"data": {"viewer": {"user": {"login": "alice"}}}}


async def test_without_a_token_there_is_no_viewer(api: Api) -> None:
    """Fields that require a viewer fail with UNAUTHENTICATED."""
    assert (await api.ask("{ viewer { user { login } } }")).json() == {"data": {"viewer": None}}
    response = await api.ask(FOLLOW)
    assert response.status_code == 200
    assert error_of(response)[0] == "UNAUTHENTICATED"


@pytest.mark.parametrize("header", ["Bearer nonsense", "Bearer", "Basic YWxpY2U6eA=="])
async def test_a_bad_token_is_refused_with_401(api: Api, header: str) -> None:
    """Even operations that anonymous clients may execute are refused."""
    response = await api.client.post("/graphql", json={"query": "{ __typename }"}, headers={"authorization": header})
    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith("Bearer")
    assert error_of(response)[0] == "UNAUTHENTICATED"


@pytest.mark.parametrize(
    "document", ["{ viewer { user { login } } }", "{ viewer { id } }", "{ viewer { homeTimeline { id } } }", FOLLOW]
)
@pytest.mark.parametrize("accept", ["application/json", GRAPHQL_JSON])
async def test_an_ended_session_is_refused_at_once(api: Api, document: str, accept: str) -> None:
    """After a log-out, queries and mutations with the token get 401 and no data, even those that read nothing."""
    session = await api.session("alice")
    headers = {"authorization": f"Bearer {Tokens([KEY]).issue(session)}", "accept": accept}
    await api.graph.sessions.end(session.user, session.id)
    response = await api.client.post("/graphql", json={"query": document}, headers=headers)
    assert response.status_code == 401
    assert "data" not in response.json()
    assert error_of(response)[0] == "UNAUTHENTICATED"


async def test_the_session_check_adds_no_round_trip(api: Api) -> None:
    """It shares the round trip of the first reads."""
    token = await api.token("alice")
    await api.ask("{ viewer { user { login } } }", token)
    store = api.app.state.graph.store
    before = store.round_trips
    await api.ask("{ viewer { user { login } } }", token)
    assert store.round_trips - before == 1


# Limits


def doubling(levels: int) -> str:
    """Return a document of fragments, each of which spreads the next one twice."""
    fragments = [f"fragment F{n} on User {{ ...F{n + 1} ...F{n + 1} }}" for n in range(levels)]
    return "{ viewer { user { ...F0 } } } " + " ".join(fragments) + f" fragment F{levels} on User {{ id }}"


@pytest.mark.parametrize(
    ("document", "what"),
    [
        (doubling(30), "too many selections"),
        ("{" + " ".join(f"a{n}: viewer {{ id }}" for n in range(101)) + "}", "101 aliases"),
        ("{ viewer { id " + "@include(if: true) " * 101 + "} }", "101 directives"),
        ("{ viewer { " + "id " * 1100 + "} }", "1,101 selections"),
        (
            '{ user(by: {login: "alice"}) { '
            + "timeline { entries(first: 1) { nodes { author { " * 6
            + "id"
            + " } } } }" * 6
            + "} }",
            "26 levels",
        ),
        ("{ viewer { user { ...A } } } fragment A on User { ...B } fragment B on User { ...A }", None),
    ],
)
async def test_a_large_document_is_refused_before_it_is_validated(api: Api, document: str, what: str | None) -> None:
    """It is measured in linear time, even if its fragments double; the message contains the size."""
    response = await api.ask(document)
    error = response.json()["errors"][0]
    assert error["extensions"]["code"] == ("COST_LIMIT" if what else "GRAPHQL_VALIDATION_FAILED")
    assert (what or "Cannot spread fragment") in error["message"]


@pytest.fixture
async def small_cache(settings: Settings, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Api]:
    """Serve an application whose document cache is small."""
    monkeypatch.setattr("server.operations.documents.CACHED_TOKENS", 2_000)
    async with serving(settings, graph) as api:
        yield api


async def test_the_document_cache_is_bounded(small_cache: Api) -> None:
    """It keeps the most recently used documents, up to a number of tokens, and no invalid documents."""
    for number in range(20):
        await small_cache.ask(f"{{ __typename }} # {number}" + "x" * 30_000)
        await small_cache.ask("{ __typename } # used again and again")
        await small_cache.ask(f"{{ wrong{number} }}")
    documents = list(small_cache.endpoint.execution.documents._documents)
    assert 15 < len(documents) <= 25
    assert "{ __typename } # used again and again" in documents
    assert not any("wrong" in document for document in documents)


async def test_the_plan_of_an_evicted_document_is_removed(small_cache: Api) -> None:
    """The plans of many large documents do not accumulate."""
    execution = small_cache.endpoint.execution
    for number in range(20):
        await small_cache.ask(f"{{ __typename }} # {number}" + "x" * 60_000)
    assert len(execution.executor._plan_cache) == len(execution.documents._documents) < 15


# Other routes


async def test_the_schema_is_served_as_sdl(api: Api) -> None:
    response = await api.client.get("/schema.graphql")
    assert "type User implements Node" in response.text


async def test_preflight_requests_allow_configured_origins(settings: Settings, graph: Graph) -> None:
    allowed = settings.model_copy(update={"allowed_origins": ("https://app.example",)})
    async with serving(allowed, graph) as api:
        for origin, answer in (("https://app.example", "https://app.example"), ("https://evil.example", None)):
            headers = {
                "origin": origin,
                "access-control-request-method": "POST",
                "access-control-request-headers": "authorization,content-type",
            }
            response = await api.client.options("/graphql", headers=headers)
            assert response.headers.get("access-control-allow-origin") == answer


async def test_production_hides_the_schema_and_the_playground(settings: Settings, graph: Graph) -> None:
    """Introspection, suggestions, /schema.graphql and the playground are disabled by default."""
    production = Settings.model_validate(settings.model_dump() | {"env": "production"})
    async with serving(production, graph) as api:
        assert (await api.client.get("/schema.graphql")).status_code == 404
        assert (await api.client.get("/playground")).status_code == 404
        page = await api.client.get("/graphql", headers={"accept": "text/html"})
        assert page.status_code == 400
        introspection = (await api.ask("{ __schema { types { name } } }")).json()
        assert introspection["errors"][0]["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"
        assert "Did you mean" not in (await api.ask("{ viewe { id } }")).text
        assert (await api.ask("{ __typename }")).json() == {"data": {"__typename": "Query"}}


async def test_the_server_survives_an_outage_of_the_store(settings: Settings, tmp_path: Path, graph: Graph) -> None:
    """Errors have the code STORE_UNAVAILABLE and readiness returns 503. Afterwards no restart is needed."""
    store = EmbeddedStore(tmp_path)
    store.start()
    away = settings.model_copy(update={"store_url": store.url, "archive_url": archive_url_of(store.url)})
    async with serving(away, graph) as api:
        api.graph = api.app.state.graph
        token = await api.token("alice")
        assert (await api.client.get("/health/ready")).status_code == 200

        store.stop()
        response = await api.ask('{ user(by: {login: "alice"}) { login } }')
        assert error_of(response)[0] == "STORE_UNAVAILABLE"
        assert response.json()["errors"][0]["message"] == "The store does not answer. Try again in a moment."
        response = await api.ask("{ viewer { user { login } } }", token)
        assert response.status_code == 503
        assert error_of(response)[0] == "STORE_UNAVAILABLE"
        assert "unix" not in response.text
        assert (await api.client.get("/health/ready")).status_code == 503
        assert (await api.client.get("/health/live")).status_code == 200

        store.start()
        await reconnected(api.graph)
        assert (await api.client.get("/health/ready")).status_code == 200
        assert (await api.ask("{ viewer { user { login } } }", token)).json() == {
            "data": {"viewer": {"user": {"login": "alice"}}}
        }
    store.stop()


async def test_a_crashed_embedded_store_is_restarted(tmp_path: Path, graph: Graph) -> None:
    """No acknowledged write is lost."""
    async with serving(Settings(data_dir=tmp_path, secret=(KEY,)), graph) as api:
        api.graph = api.app.state.graph
        token = await api.token("alice")
        os.kill(EmbeddedStore(tmp_path).pid, signal.SIGKILL)
        async with asyncio.timeout(PATIENCE):
            while (response := await api.ask("{ viewer { user { login } } }", token)).status_code != 200:
                pass
        assert json.loads(response.text) == {"data": {"viewer": {"user": {"login": "alice"}}}}
