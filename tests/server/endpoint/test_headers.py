"""Headers of requests to the endpoint and of its responses: CORS, request ids, and repeated headers."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from graph import Graph
from server.auth import MAX_TOKEN
from server.endpoint.responses import GRAPHQL_JSON
from server.settings import Settings
from tests.server.conftest import Api, serving

ALLOWED, OTHER = "https://app.example", "https://other.example"
QUERY = {"query": "{ __typename }"}
CORS = ("vary", "access-control-allow-origin", "access-control-expose-headers")


@pytest.fixture(params=[(), (ALLOWED,), ("*",)], ids=["no origin", "one origin", "all origins"])
async def crossing(request: pytest.FixtureRequest, settings: Settings, graph: Graph) -> AsyncIterator[Api]:
    """Serve an application that allows some origins."""
    async with serving(settings.model_copy(update={"allowed_origins": request.param}), graph) as api:
        yield api


def cors(response: httpx.Response) -> dict[str, str | None]:
    return {name: response.headers.get(name) for name in CORS}


@pytest.mark.parametrize("origin", [None, ALLOWED, OTHER, "null"])
async def test_cors_headers_are_those_of_the_other_routes(crossing: Api, origin: str | None) -> None:
    """Whether the request succeeds, fails or streams, the endpoint sends what Starlette's middleware would."""
    headers = {"origin": origin} if origin else {}
    expected = cors(await crossing.client.get("/health/live", headers=headers))
    posts: list[tuple[dict[str, Any], dict[str, str]]] = [
        (QUERY, {}),
        ({}, {}),
        (QUERY, {"authorization": "Bearer x"}),
        (QUERY, {"accept": "text/event-stream"}),
    ]
    for body, more in posts:
        response = await crossing.client.post("/graphql", json=body, headers=headers | more)
        assert cors(response) == expected
        assert response.headers["x-request-id"]
    got = cors(await crossing.client.get("/graphql", params=QUERY, headers=headers))
    assert got == expected | {"vary": "Origin, Accept, Authorization, Cookie"}


async def test_an_internal_error_has_the_headers_of_every_response(
    settings: Settings, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("the password is hunter2")

    async with serving(settings.model_copy(update={"allowed_origins": (ALLOWED,)}), graph) as api:
        monkeypatch.setattr(api.endpoint, "_read", broken)
        response = await api.client.post("/graphql", json=QUERY, headers={"origin": ALLOWED})
    assert response.status_code == 500
    assert "hunter2" not in response.text
    assert response.headers["access-control-allow-origin"] == ALLOWED
    assert response.headers["x-request-id"] in response.json()["errors"][0]["message"]


def preflight(origin: str, *names: str) -> dict[str, str]:
    """Return the headers of a preflight request for these headers."""
    requested = {"access-control-request-method": "POST", "access-control-request-headers": ",".join(names)}
    return {"origin": origin, **requested}


@pytest.mark.parametrize("crossing", [(ALLOWED,)], indirect=True)
@pytest.mark.parametrize(
    "names",
    [
        ("content-type", "authorization"),
        ("content-type", "traceparent", "tracestate", "baggage", "sentry-trace"),
        ("Cache-Control", "PRAGMA", "X-Requested-With"),
        ("Apollo-Require-Preflight", "X-APOLLO-OPERATION-NAME", "apollographql-client-name"),
        ("b3", "x-b3-traceid", "x-datadog-trace-id"),
    ],
)
async def test_pages_may_send_the_headers_of_common_libraries(crossing: Api, names: tuple[str, ...]) -> None:
    """Case is ignored. One header that is not allowed would block every request of the page."""
    response = await crossing.client.options("/graphql", headers=preflight(ALLOWED, *names))
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == ALLOWED
    granted = response.headers["access-control-allow-headers"].lower().split(", ")
    assert {name.lower() for name in names} <= set(granted)
    sent = await crossing.client.post(
        "/graphql", json=QUERY, headers={"origin": ALLOWED, **dict.fromkeys(names[2:], "x")}
    )
    assert sent.json() == {"data": {"__typename": "Query"}}


async def test_the_operator_allows_further_headers(settings: Settings, graph: Graph) -> None:
    """Other headers are still refused."""
    changed = settings.model_copy(update={"allowed_origins": (ALLOWED,), "allowed_headers": ("x-tenant",)})
    async with serving(changed, graph) as api:
        for name, status in (("X-Tenant", 200), ("x-other", 400)):
            response = await api.client.options("/graphql", headers=preflight(ALLOWED, "content-type", name))
            assert response.status_code == status, name


@pytest.mark.parametrize("crossing", [(), (ALLOWED,)], indirect=True)
@pytest.mark.parametrize("name", ["traceparent", "fanline-session", "content-type"])
async def test_pages_of_other_origins_may_send_no_header(crossing: Api, name: str) -> None:
    """A page that could send `Fanline-Session` would use its visitor's cookie."""
    response = await crossing.client.options("/graphql", headers=preflight(OTHER, name))
    assert response.status_code == 400
    assert "access-control-allow-origin" not in response.headers


async def test_options_without_an_origin_is_not_allowed(api: Api) -> None:
    """Only the preflight request of a browser is answered."""
    response = await api.client.options("/graphql")
    assert (response.status_code, response.headers["allow"]) == (405, "GET, POST")
    assert response.json()["errors"][0]["extensions"]["requestId"] == response.headers["x-request-id"]


async def test_a_body_in_chunks_is_read_like_one_with_a_length(api: Api) -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b'{"query": "{ __'
        yield b'typename }"}'

    response = await api.client.post("/graphql", content=parts(), headers={"content-type": "application/json"})
    assert response.json() == {"data": {"__typename": "Query"}}


async def test_lines_of_a_header_that_is_a_list_are_one_list(api: Api) -> None:
    """The order of the lines does not matter."""
    for types in (("text/plain", GRAPHQL_JSON), (GRAPHQL_JSON, "text/plain")):
        headers = [("accept", media_type) for media_type in types]
        response = await api.client.post("/graphql", json=QUERY, headers=headers)
        assert response.headers["content-type"] == GRAPHQL_JSON


async def test_white_space_around_a_token_adds_no_cache_entry(api: Api) -> None:
    """Otherwise one valid token could fill the cache of verified tokens."""
    token = await api.token("alice")
    for spaces in range(1, 5):
        headers = {"authorization": "Bearer" + " " * spaces + token}
        assert (await api.client.post("/graphql", json=QUERY, headers=headers)).status_code == 200
    assert list(api.endpoint.callers._tokens._verified) == [token]
    too_long = {"authorization": "Bearer" + " " * MAX_TOKEN + token}
    assert (await api.client.post("/graphql", json=QUERY, headers=too_long)).status_code == 401
