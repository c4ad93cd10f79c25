"""Fanline behind nginx and Caddy, with the configurations of docs/deployment."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from graph import Graph
from server.auth import Tokens
from server.setting_values import Env
from server.settings import Settings
from tests.deployment.proxies import HOST, KINDS, Proxy, running
from tests.server.conftest import KEY, Api, Socket, events, serving, settings
from tests.support.graph_worlds import PATIENCE

pytestmark = pytest.mark.slow

__all__ = ["settings"]

TOKEN = "a-token-of-prometheus"
BODY_SECONDS = 1.2  # slightly longer than the proxies' timeout for a request body in these tests
LIVE = "subscription { homeTimeline { __typename cursor ... on PostAdded { post { text } } } }"
VIEWER = {"query": "{ viewer { user { login } } }"}


@pytest.fixture
async def api(settings: Settings, graph: Graph) -> AsyncIterator[Api]:
    """Serve in production mode with two sockets per anonymous address."""
    changed = {
        "env": Env.PRODUCTION,
        "metrics_token": TOKEN,
        "max_streams": 2,
        "trusted_proxies": ("127.0.0.1",),
    }
    async with serving(settings.model_copy(update=changed), graph) as api:
        yield api


@pytest.fixture(params=sorted(KINDS))
async def proxy(request: pytest.FixtureRequest, api: Api, tmp_path: Path) -> AsyncIterator[Proxy]:
    """Run a proxy in front of the API."""
    port = httpx.URL(api.url).port
    assert port
    async with running(request.param, tmp_path, port) as proxy:
        yield proxy


async def admitted(socket: Socket, token: str | None = None) -> int | None:
    """Send `connection_init`. Return None if it is acknowledged, else the close code."""
    await socket.send(type="connection_init", payload={"authorization": f"Bearer {token}"} if token else {})
    try:
        async with asyncio.timeout(PATIENCE):
            await socket.connection.recv()
    except ConnectionClosed:
        return socket.connection.close_code
    return None


async def test_connections_are_kept_alive(api: Api, proxy: Proxy) -> None:
    """The proxy keeps its connections to Fanline open, offers HTTP/2 and sets HSTS."""
    headers = {"authorization": f"Bearer {await api.token('alice')}", "x-request-id": "from-the-client"}
    async with proxy.client() as client:
        answers = [await client.post("/graphql", json=VIEWER, headers=headers) for _ in range(20)]
        health = await client.get("/health/ready")

    assert {answer.text for answer in answers} == {'{"data":{"viewer":{"user":{"login":"alice"}}}}'}
    assert answers[0].headers["x-request-id"] == "from-the-client"
    assert answers[0].headers["strict-transport-security"] == "max-age=63072000"
    assert health.json() == {"status": "ready"}
    assert 1 <= len(api.server.server_state.connections) <= 2

    trust = ssl.create_default_context(cafile=None)
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    trust.set_alpn_protocols(["h2", "http/1.1"])
    _, writer = await asyncio.open_connection("127.0.0.1", proxy.ports.https, ssl=trust, server_hostname=HOST)
    assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "h2"
    writer.close()


async def test_only_the_api_is_reachable(api: Api, proxy: Proxy) -> None:
    """Metrics, even with their token, and other paths are refused. HTTP without TLS is redirected."""
    token = {"authorization": f"Bearer {TOKEN}"}
    assert (await api.client.get("/metrics", headers=token)).status_code == 200
    async with proxy.client() as client:
        for path in ("/metrics", "/metrics/", "//metrics", "/graphql/../metrics", "/%6Detrics", "/graphql/", "/", "/x"):
            assert (await client.get(path, headers=token)).status_code in (400, 404), path
    async with httpx.AsyncClient(timeout=PATIENCE) as client:
        plain = await client.post(f"http://127.0.0.1:{proxy.ports.http}/graphql", json=VIEWER, headers={"host": HOST})
    assert plain.status_code == 308
    assert plain.headers["location"].startswith(f"https://{HOST}")


@pytest.mark.parametrize("spoofed", ["192.0.2.1", "127.0.0.3, 127.0.0.1", "127.0.0.1"])
async def test_client_addresses_cannot_be_spoofed(api: Api, proxy: Proxy, spoofed: str) -> None:
    """The third socket of an address is refused; another address may open one."""
    headers = {"x-forwarded-for": spoofed, "forwarded": f"for={spoofed}", "x-real-ip": spoofed}
    async with (
        proxy.socket("127.0.0.2", additional_headers=headers) as first,
        proxy.socket("127.0.0.2") as same,
        proxy.socket("127.0.0.2", additional_headers=headers) as again,
        proxy.socket("127.0.0.3", additional_headers=headers) as other,
    ):
        assert await admitted(first) is None
        assert await admitted(same) is None
        assert await admitted(again) == 1013
        assert await admitted(other) is None


async def test_only_pages_of_the_same_origin_may_open_websockets(api: Api, proxy: Proxy) -> None:
    """The proxy forwards the requested host."""
    async with proxy.socket(origin=f"https://{HOST}") as socket:
        assert await admitted(socket) is None
    with pytest.raises(InvalidStatus, match="403"):
        async with proxy.socket(origin="https://evil.example"):
            pass


async def test_events_arrive_one_by_one_over_sockets_and_streams(api: Api, proxy: Proxy) -> None:
    """Each event arrives before the next one is published, and after the timeout of a request body."""
    session = await api.session("alice")
    token = Tokens([KEY]).issue(session)
    async with (
        proxy.socket() as socket,
        proxy.client() as client,
        client.stream("POST", "/graphql", json={"query": LIVE}, headers=streaming(token)) as response,
        aclosing(events(response)) as streamed,
    ):
        assert await admitted(socket, token) is None
        await socket.subscribe("1", LIVE)
        assert response.headers["content-type"] == "text/event-stream"
        assert "content-encoding" not in response.headers
        for expected in (None, "one", "two"):
            if expected == "one":
                await asyncio.sleep(BODY_SECONDS)
            if expected:
                await api.graph.posts.publish(session.user, expected)
            async with asyncio.timeout(PATIENCE):
                assert text((await anext(streamed)).data) == expected
            assert text((await socket.receive())["payload"]) == expected


async def test_a_restart_ends_websockets_and_streams_so_that_clients_reconnect(api: Api, proxy: Proxy) -> None:
    """The close code is 1012, and no event `complete` is sent. The restart does not wait for a timeout of the proxy."""
    token = await api.token("alice")
    async with (
        proxy.socket() as socket,
        proxy.client() as client,
        client.stream("POST", "/graphql", json={"query": LIVE}, headers=streaming(token)) as response,
        aclosing(events(response)) as streamed,
    ):
        assert await admitted(socket, token) is None
        await anext(streamed)
        async with asyncio.timeout(PATIENCE):
            await api.server.shutdown()
            assert await socket.closed() == (1012, "")
            assert [event async for event in streamed] == []


async def test_bodies_that_are_too_large_are_refused(proxy: Proxy) -> None:
    """The proxy or Fanline answers 413, with or without a declared length."""
    body = b'{"query": "{ viewer { user { login } } }", "x": "' + b"x" * 300_000 + b'"}'

    async def in_chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 50_000):
            yield body[start : start + 50_000]

    headers = {"content-type": "application/json"}
    async with proxy.client() as client:
        declared = await client.post("/graphql", content=body, headers=headers)
    async with proxy.client() as client:
        chunked = await client.post("/graphql", content=in_chunks(), headers=headers)
    assert declared.status_code == 413
    assert chunked.status_code == 413


async def test_long_answers_are_compressed(api: Api, proxy: Proxy) -> None:
    """Only JSON is compressed, because compression would delay event streams."""
    session = await api.session("alice")
    for _ in range(3):
        await api.graph.posts.publish(session.user, "x" * 1000)
    query = '{ user(by: {login: "alice"}) { timeline { entries(first: 3) { nodes { ... on Post { text } } } } } }'
    async with proxy.client() as client:
        answer = await client.post("/graphql", json={"query": query})
    assert len(answer.json()["data"]["user"]["timeline"]["entries"]["nodes"]) == 3
    assert answer.headers["content-encoding"] == "gzip"


def streaming(token: str) -> dict[str, str]:
    """Return the headers of a request for an event stream."""
    return {"authorization": f"Bearer {token}", "accept": "text/event-stream"}


def text(result: Any) -> str | None:
    """Return the text of an added post, or None for any other event."""
    event = result["data"]["homeTimeline"]
    return str(event["post"]["text"]) if "post" in event else None
