"""Fanline behind nginx and Caddy, with the configurations that docs/deployment ships."""

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
from server.settings import Env, Settings
from tests.deployment.proxies import HOST, KINDS, Proxy, running
from tests.server.conftest import KEY, Api, Socket, events, serving, settings
from tests.support.graph_worlds import PATIENCE

__all__ = ["settings"]

TOKEN = "a-token-of-prometheus"
BODY_SECONDS = 1.2  # a little longer than the proxies of the tests give a request's body
LIVE = "subscription { homeTimeline { __typename cursor ... on PostAdded { edge { node { text } } } } }"
VIEWER = {"query": "{ viewer { login } }"}


@pytest.fixture
async def api(settings: Settings, graph: Graph) -> AsyncIterator[Api]:
    """Serve in production; each anonymous address may have two sockets."""
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
    """Run a proxy before it."""
    port = httpx.URL(api.url).port
    assert port
    async with running(request.param, tmp_path, port) as proxy:
        yield proxy


async def admitted(socket: Socket, token: str | None = None) -> int | None:
    """Say `connection_init`; give None if it is acknowledged, else the close code."""
    await socket.send(type="connection_init", payload={"authorization": f"Bearer {token}"} if token else {})
    try:
        async with asyncio.timeout(PATIENCE):
            await socket.connection.recv()
    except ConnectionClosed:
        return socket.connection.close_code
    return None


async def test_requests_are_answered_over_connections_that_stay_open(api: Api, proxy: Proxy) -> None:
    """Those of clients, and those to Fanline; HTTP/2 is offered, TLS is demanded from then on."""
    headers = {"authorization": f"Bearer {await api.token('alice')}", "x-request-id": "from-the-client"}
    async with proxy.client() as client:
        answers = [await client.post("/graphql", json=VIEWER, headers=headers) for _ in range(20)]
        health = await client.get("/health/ready")

    assert {answer.text for answer in answers} == {'{"data":{"viewer":{"login":"alice"}}}'}
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


async def test_nothing_else_can_be_reached(api: Api, proxy: Proxy) -> None:
    """Neither metrics, with their token, nor other paths, other hosts, or the API without TLS."""
    token = {"authorization": f"Bearer {TOKEN}"}
    assert (await api.client.get("/metrics", headers=token)).status_code == 200
    async with proxy.client() as client:
        for path in ("/metrics", "/metrics/", "//metrics", "/graphql/../metrics", "/%6Detrics", "/graphql/", "/", "/x"):
            assert (await client.get(path, headers=token)).status_code in (400, 404), path
    async with httpx.AsyncClient() as client:
        plain = await client.post(f"http://127.0.0.1:{proxy.ports.http}/graphql", json=VIEWER, headers={"host": HOST})
    assert plain.status_code == 308
    assert plain.headers["location"].startswith(f"https://{HOST}")


@pytest.mark.parametrize("spoofed", ["192.0.2.1", "127.0.0.3, 127.0.0.1", "127.0.0.1"])
async def test_fanline_sees_the_address_of_the_client_whatever_the_client_says(
    api: Api, proxy: Proxy, spoofed: str
) -> None:
    """The third socket of an address is one too many; that of another address is not."""
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


async def test_pages_of_the_own_origin_may_open_sockets_and_others_may_not(api: Api, proxy: Proxy) -> None:
    """Fanline learns from the proxy which host was asked for."""
    async with proxy.socket(origin=f"https://{HOST}") as socket:
        assert await admitted(socket) is None
    with pytest.raises(InvalidStatus, match="403"):
        async with proxy.socket(origin="https://evil.example"):
            pass


async def test_events_arrive_one_by_one_over_sockets_and_streams(api: Api, proxy: Proxy) -> None:
    """Each before the next is published, and after the time that a request's body may take has passed."""
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
            if expected:
                await asyncio.sleep(BODY_SECONDS)
                await api.graph.posts.publish(session.user, expected)
            async with asyncio.timeout(PATIENCE):
                assert text((await anext(streamed)).data) == expected
            assert text((await socket.receive())["payload"]) == expected


async def test_on_a_restart_sockets_are_closed_and_streams_end_so_that_clients_come_back(
    api: Api, proxy: Proxy
) -> None:
    """With 1012, and without the event `complete`; nobody waits for a timeout of the proxy."""
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
    """With 413, by the proxy or by Fanline behind it, whether or not their length is declared."""
    body = b'{"query": "{ viewer { login } }", "x": "' + b"x" * 300_000 + b'"}'

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
    """But only those of JSON: event streams would be held back."""
    session = await api.session("alice")
    for _ in range(3):
        await api.graph.posts.publish(session.user, "x" * 1000)
    query = '{ user(by: {login: "alice"}) { timeline { posts(first: 3) { nodes { text } } } } }'
    async with proxy.client() as client:
        answer = await client.post("/graphql", json={"query": query})
    assert len(answer.json()["data"]["user"]["timeline"]["posts"]["nodes"]) == 3
    assert answer.headers["content-encoding"] == "gzip"


def streaming(token: str) -> dict[str, str]:
    """Give the headers that ask for an event stream."""
    return {"authorization": f"Bearer {token}", "accept": "text/event-stream"}


def text(result: Any) -> str | None:
    """Give the text of a post that was added; None for any other event."""
    event = result["data"]["homeTimeline"]
    return str(event["edge"]["node"]["text"]) if "edge" in event else None
