"""Trusted documents: executed by id over every transport; the mode `only` refuses all others."""

import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from graph import Graph
from server.operations.documents import CACHED_TOKENS
from server.setting_values import TrustedDocumentsMode
from server.settings import Settings
from tests.server.conftest import Api, events, serving

OFF, ALLOW, ONLY = TrustedDocumentsMode.OFF, TrustedDocumentsMode.ALLOW, TrustedDocumentsMode.ONLY
USER = "query User($login: String!) { user(by: { login: $login }) { login } }"
VIEWER = "{ viewer { user { login } } }"
LOG_OUT = "mutation { logOut(input: {}) { userErrors { code } } }"
LIVE = "subscription { homeTimeline { __typename } }"
LIST = """query List($n: Int!) {
    viewer { user { followers(first: $n) { nodes { followers(first: $n) { nodes { id } } } } } } }"""
DOCUMENTS = {"user": USER, "viewer": VIEWER, "log-out": LOG_OUT, "live": LIVE, "list": LIST}


def sha256(text: str) -> str:
    """Return the hash of a text as clients send it."""
    return hashlib.sha256(text.encode()).hexdigest()


def hashed(given: object, **more: Any) -> dict[str, Any]:
    """Return a request with Apollo's extension."""
    return {"extensions": {"persistedQuery": {"version": 1, "sha256Hash": given}}, **more}


@asynccontextmanager
async def trusting(
    settings: Settings, graph: Graph, folder: Path, mode: TrustedDocumentsMode, **more: Any
) -> AsyncIterator[Api]:
    """Serve with a manifest of the documents above."""
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps(DOCUMENTS))
    changed = {"trusted_documents": manifest, "trusted_documents_mode": mode, **more}
    async with serving(settings.model_copy(update=changed), graph) as api:
        yield api


@pytest.fixture
async def off(settings: Settings, graph: Graph, tmp_path: Path) -> AsyncIterator[Api]:
    """Serve without trusted documents."""
    async with trusting(settings, graph, tmp_path, OFF) as api:
        yield api


@pytest.fixture
async def allow(settings: Settings, graph: Graph, tmp_path: Path) -> AsyncIterator[Api]:
    """Serve in the mode `allow`."""
    async with trusting(settings, graph, tmp_path, ALLOW) as api:
        yield api


@pytest.fixture
async def only(settings: Settings, graph: Graph, tmp_path: Path) -> AsyncIterator[Api]:
    """Serve in the mode `only`."""
    async with trusting(settings, graph, tmp_path, ONLY) as api:
        yield api


async def post(api: Api, token: str | None = None, /, **body: Any) -> httpx.Response:
    """Post a request."""
    return await api.client.post("/graphql", json=body, headers={"authorization": f"Bearer {token}"} if token else {})


async def get(api: Api, **parameters: Any) -> httpx.Response:
    """Send a GET request; values other than strings are sent as JSON."""
    sent = {name: value if isinstance(value, str) else json.dumps(value) for name, value in parameters.items()}
    return await api.client.get("/graphql", params=sent)


def code(response: httpx.Response) -> str:
    """Return the code of the only error."""
    body = response.json()
    assert list(body) == ["errors"]
    [error] = body["errors"]
    assert error["extensions"]["requestId"]
    return str(error["extensions"]["code"])


@pytest.mark.parametrize("mode", [ALLOW, ONLY])
async def test_a_document_is_executed_by_id(
    settings: Settings, graph: Graph, tmp_path: Path, mode: TrustedDocumentsMode
) -> None:
    """POST and GET accept the id in the manifest, the hash of the text, and Apollo's extension."""
    async with trusting(settings, graph, tmp_path, mode) as api:
        await api.session("ada")
        for body in (
            {"documentId": "user"},
            {"documentId": f"sha256:{sha256(USER)}"},
            {"documentId": "user", "query": ""},
            {"documentId": "user", "extensions": {"other": 1}},
            hashed(sha256(USER)),
            hashed("user"),
            hashed(sha256(USER), query=""),
        ):
            posted = await post(api, **body, variables={"login": "ada"}, operationName="User")
            gotten = await get(api, **body, variables={"login": "ada"})
            assert posted.json() == gotten.json() == {"data": {"user": {"login": "ada"}}}, body
            assert posted.status_code == gotten.status_code == 200


async def test_a_document_by_id_has_a_viewer(only: Api) -> None:
    token = await only.token("ada")
    assert (await post(only, token, documentId="viewer")).json() == {"data": {"viewer": {"user": {"login": "ada"}}}}
    assert (await post(only, token, documentId="log-out")).json() == {"data": {"logOut": {"userErrors": []}}}
    assert (await post(only, token, documentId="viewer")).status_code == 401


async def test_a_request_with_an_origin_is_executed_by_id(settings: Settings, graph: Graph, tmp_path: Path) -> None:
    origin = "https://app.example"
    async with trusting(settings, graph, tmp_path, ONLY, allowed_origins=(origin,)) as api:
        answers = [
            await api.client.post("/graphql", json=body, headers={"origin": origin})
            for body in ({"documentId": "viewer"}, {"query": VIEWER})
        ]
    assert answers[0].json() == {"data": {"viewer": None}}
    assert code(answers[1]) == "PERSISTED_QUERY_ID_REQUIRED"


async def test_a_mutation_is_not_executed_by_get(only: Api) -> None:
    """It is executed neither with a JSON response nor with an event stream."""
    for accept in ("application/json", "text/event-stream"):
        response = await only.client.get("/graphql", params={"documentId": "log-out"}, headers={"accept": accept})
        assert response.status_code == 405
        assert response.headers["allow"] == "POST"


async def test_responses_to_ids_have_the_usual_headers(allow: Api) -> None:
    """They are those of the same document sent as text."""
    by_id = await get(allow, documentId="viewer")
    by_text = await get(allow, query=VIEWER)
    varying = ("x-request-id", "date")
    assert [(k, v) for k, v in by_id.headers.items() if k not in varying] == [
        (k, v) for k, v in by_text.headers.items() if k not in varying
    ]


@pytest.mark.parametrize("parameters", [{"documentId": "viewer"}, hashed(sha256(VIEWER)), {"query": VIEWER}])
async def test_a_browser_that_opens_the_url_of_a_document_gets_its_result(
    allow: Api, parameters: dict[str, Any]
) -> None:
    """The playground is only at the URL without parameters."""
    sent = {name: value if isinstance(value, str) else json.dumps(value) for name, value in parameters.items()}
    answer = await allow.client.get("/graphql", params=sent, headers={"accept": "text/html,*/*"})
    assert answer.json() == {"data": {"viewer": None}}
    page = await allow.client.get("/graphql", headers={"accept": "text/html,*/*"})
    assert page.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("body", [{"documentId": "live"}, hashed(sha256(LIVE))])
@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_listed_subscription_is_streamed_by_id(only: Api, body: dict[str, Any], method: str) -> None:
    token = await only.token("ada")
    headers = {"authorization": f"Bearer {token}", "accept": "text/event-stream"}
    parameters = {name: value if isinstance(value, str) else json.dumps(value) for name, value in body.items()}
    sent: dict[str, Any] = {"json": body} if method == "POST" else {"params": parameters}
    async with (
        only.client.stream(method, "/graphql", headers=headers, **sent) as response,
        aclosing(events(response)) as stream,
    ):
        event = await anext(stream)
    assert (event.name, event.data) == ("next", {"data": {"homeTimeline": {"__typename": "Checkpoint"}}})


async def test_an_event_stream_of_another_document_is_refused(only: Api) -> None:
    """The response is JSON."""
    async with only.stream(LIVE, await only.token("ada")) as response:
        await response.aread()
        assert response.status_code == 400
        assert code(response) == "PERSISTED_QUERY_ID_REQUIRED"


@pytest.mark.parametrize("payload", [{"documentId": "live"}, {"documentId": "live", "query": ""}, hashed(sha256(LIVE))])
async def test_a_listed_subscription_runs_on_a_socket_by_id(only: Api, payload: dict[str, Any]) -> None:
    """The client graphql-ws sends an empty query."""
    async with only.socket(await only.token("ada")) as socket:
        await socket.send(type="subscribe", id="1", payload=payload)
        message = await socket.receive()
        assert message == {
            "type": "next",
            "id": "1",
            "payload": {"data": {"homeTimeline": {"__typename": "Checkpoint"}}},
        }


@pytest.mark.parametrize(
    ("payload", "refusal"),
    [
        ({"query": VIEWER}, "PERSISTED_QUERY_ID_REQUIRED"),
        ({"query": VIEWER, **hashed(sha256(VIEWER))}, "PERSISTED_QUERY_ID_REQUIRED"),
        ({"documentId": "other"}, "PERSISTED_QUERY_NOT_IN_LIST"),
        (hashed("0" * 64), "PERSISTED_QUERY_NOT_IN_LIST"),
        ({"documentId": "user", "query": USER}, "BAD_USER_INPUT"),
        ({"documentId": "x" * 257}, "BAD_USER_INPUT"),
        ({"extensions": {"persistedQuery": 1}}, "BAD_USER_INPUT"),
        ({"extensions": {"other": 1}}, "BAD_USER_INPUT"),
    ],
)
async def test_a_refusal_on_a_socket_ends_only_the_operation(only: Api, payload: dict[str, Any], refusal: str) -> None:
    """The code and message are those of an HTTP response. The id of the operation may be used again."""
    async with only.socket() as socket:
        await socket.send(type="subscribe", id="1", payload=payload)
        message = await socket.receive()
        [error] = message["payload"]
        assert (message["type"], message["id"], error["extensions"]["code"]) == ("error", "1", refusal)
        [answered] = (await post(only, **payload)).json()["errors"]
        assert error["message"] == answered["message"]
        await socket.send(type="subscribe", id="1", payload={"documentId": "viewer"})
        assert (await socket.receive())["payload"] == {"data": {"viewer": None}}


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"query": ""},
        {"documentId": 7},
        {"documentId": "viewer", "query": 7},
        {"documentId": "viewer", "variables": 7},
        {"documentId": "viewer", "operationName": 7},
        {"documentId": "viewer", "extensions": 7},
    ],
)
async def test_a_payload_of_wrong_types_closes_the_socket(only: Api, payload: dict[str, Any]) -> None:
    """It violates the protocol."""
    async with only.socket() as socket:
        await socket.send(type="subscribe", id="1", payload=payload)
        assert (await socket.closed())[0] == 4400


async def test_the_mode_only_refuses_texts(only: Api) -> None:
    """Even the text of a trusted document is refused, by POST and GET."""
    refused: list[tuple[dict[str, Any], str]] = [
        ({"query": VIEWER}, "PERSISTED_QUERY_ID_REQUIRED"),
        ({"query": VIEWER, **hashed(sha256(VIEWER))}, "PERSISTED_QUERY_ID_REQUIRED"),
        ({"query": "{ __schema { types { name } } }"}, "PERSISTED_QUERY_ID_REQUIRED"),
        ({"query": "{"}, "PERSISTED_QUERY_ID_REQUIRED"),
        ({"documentId": "other"}, "PERSISTED_QUERY_NOT_IN_LIST"),
        (hashed(sha256("{ other }")), "PERSISTED_QUERY_NOT_IN_LIST"),
        ({"documentId": USER}, "PERSISTED_QUERY_NOT_IN_LIST"),
        ({"documentId": sha256(USER)}, "PERSISTED_QUERY_NOT_IN_LIST"),
        ({"documentId": f"sha256:{sha256(USER).upper()}"}, "PERSISTED_QUERY_NOT_IN_LIST"),
    ]
    for body, refusal in refused:
        for response in (await post(only, **body), await get(only, **body)):
            assert (response.status_code, code(response)) == (400, refusal), body


async def test_the_mode_allow_executes_texts(allow: Api) -> None:
    assert (await post(allow, query=VIEWER)).json() == {"data": {"viewer": None}}
    assert (await post(allow, query="{ a: viewer { id } }")).json() == {"data": {"a": None}}
    assert code(await post(allow, documentId="other")) == "PERSISTED_QUERY_NOT_IN_LIST"


async def test_the_mode_allow_executes_a_text_with_its_hash(allow: Api) -> None:
    """The hash is checked, but not registered."""
    text = "{ b: viewer { id } }"
    for _ in range(2):
        unknown = await post(allow, **hashed(sha256(text)))
        assert (unknown.status_code, code(unknown)) == (200, "PERSISTED_QUERY_NOT_FOUND")
        assert unknown.json()["errors"][0]["message"] == "PersistedQueryNotFound"
        assert unknown.headers["cache-control"] == "no-store"
        assert (await post(allow, query=text, **hashed(sha256(text)))).json() == {"data": {"b": None}}
    wrong = await post(allow, query=text, **hashed(sha256(VIEWER)))
    assert (wrong.status_code, code(wrong)) == (400, "BAD_USER_INPUT")


async def test_the_mode_off_refuses_ids(off: Api) -> None:
    """Apollo's client is told to send texts from then on. The manifest is not read."""
    by_id = await post(off, documentId="viewer")
    assert (by_id.status_code, code(by_id)) == (400, "PERSISTED_QUERY_NOT_SUPPORTED")
    by_hash = await post(off, **hashed(sha256(VIEWER)))
    assert (by_hash.status_code, code(by_hash)) == (200, "PERSISTED_QUERY_NOT_SUPPORTED")
    assert by_hash.json()["errors"][0]["message"] == "PersistedQueryNotSupported"
    assert (await post(off, query=VIEWER, **hashed("anything"))).json() == {"data": {"viewer": None}}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"documentId": 7}, "'documentId' must be a string"),
    ({"documentId": ["viewer"]}, "'documentId' must be a string"),
    ({"documentId": ""}, "'documentId' must have 1 to 256 characters"),
    ({"documentId": "x" * 257}, "'documentId' must have 1 to 256 characters"),
    ({"documentId": "viewer", "query": VIEWER}, "both 'query' and 'documentId'"),
    ({"documentId": "viewer", **hashed(sha256(VIEWER))}, "both 'documentId' and 'extensions.persistedQuery'"),
    ({"extensions": {"persistedQuery": "x"}}, "must be an object whose 'version' is 1"),
    ({"extensions": {"persistedQuery": {"version": 2, "sha256Hash": "x"}}}, "whose 'version' is 1"),
    ({"extensions": {"persistedQuery": {"version": 1}}}, "must be a string of 1 to 256 characters"),
    (hashed(7), "must be a string of 1 to 256 characters"),
    (hashed(""), "must be a string of 1 to 256 characters"),
    (hashed("x" * 257), "must be a string of 1 to 256 characters"),
    ({"extensions": {}}, "neither a 'query'"),
    ({"extensions": {"persistedQuery": None}}, "neither a 'query'"),
    ({"documentId": None}, "neither a 'query'"),
]


@pytest.mark.parametrize("mode", [OFF, ALLOW, ONLY])
async def test_a_request_that_names_no_document_is_refused(
    settings: Settings, graph: Graph, tmp_path: Path, mode: TrustedDocumentsMode
) -> None:
    """The message does not quote the request."""
    async with trusting(settings, graph, tmp_path, mode) as api:
        for body, sentence in WRONG:
            response = await post(api, **body)
            assert (response.status_code, code(response)) == (400, "BAD_USER_INPUT"), body
            assert sentence in response.json()["errors"][0]["message"]
            assert len(response.content) < 400


async def test_the_cost_limit_applies_to_trusted_documents(only: Api) -> None:
    """Page sizes are variables, so the cost is checked for each request."""
    token = await only.token("ada")
    assert "errors" not in (await post(only, token, documentId="list", variables={"n": 2})).json()
    assert code(await post(only, token, documentId="list", variables={"n": 100})) == "COST_LIMIT"


async def test_trusted_documents_stay_prepared(allow: Api) -> None:
    """The number of other documents that are prepared does not matter."""
    documents = allow.endpoint.execution.documents
    trusted = documents.prepare(VIEWER)
    texts = [
        f"query A{number} {{ nodes(ids: [{' 1' * 1_900}]) {{ id }} }}" for number in range(CACHED_TOKENS // 1_900 + 1)
    ]
    for text in texts:
        documents.prepare(text)
    assert documents.known(texts[0]) is None
    assert documents.known(VIEWER) is documents.prepare(VIEWER) is trusted
    assert (await post(allow, documentId="viewer")).json() == {"data": {"viewer": None}}


async def test_unknown_ids_are_not_stored(allow: Api) -> None:
    before = len(allow.endpoint.trusted)
    for number in range(50):
        assert code(await post(allow, documentId=f"unknown-{number}")) == "PERSISTED_QUERY_NOT_IN_LIST"
        assert code(await post(allow, **hashed(f"{number:064x}"))) == "PERSISTED_QUERY_NOT_FOUND"
    assert len(allow.endpoint.trusted) == before == len(DOCUMENTS)


async def test_the_mode_only_refuses_operations_of_the_playground(only: Api) -> None:
    """The page is served; its operations are refused with a message that says what to do."""
    assert (await only.client.get("/playground")).status_code == 200
    assert "Send a 'documentId'" in (await only.ask(VIEWER)).json()["errors"][0]["message"]
