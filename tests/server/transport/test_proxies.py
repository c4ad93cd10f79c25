"""Trusted proxies: their headers determine the client and the scheme."""

import logging
from typing import Any

import pytest
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from graph import Graph
from server.settings import Settings
from server.transport.proxies import TrustedProxies, parse_proxies
from tests.server.conftest import Api, serving
from tests.server.transport.conftest import Raw, post

PROXIES = ("127.0.0.1", "10.0.0.0/8", "2001:db8:ffff::/48")


def resolved(*forwarded: str, proto: str | None = None, kind: str = "http") -> tuple[str, str]:
    """Return the client address and scheme for headers from a trusted proxy."""
    headers = [(b"x-forwarded-for", value.encode("latin-1")) for value in forwarded]
    if proto is not None:
        headers.append((b"x-forwarded-proto", proto.encode()))
    scope: dict[str, Any] = {"type": kind, "client": ("127.0.0.1", 5), "scheme": "http", "headers": headers}
    TrustedProxies(parse_proxies(PROXIES)).apply(scope)
    return scope["client"][0], scope["scheme"]


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ([], "127.0.0.1"),
        (["192.0.2.1"], "192.0.2.1"),
        (["192.0.2.1:4711"], "192.0.2.1"),
        (["2001:db8::1"], "2001:db8::1"),
        (["[2001:0db8::0001]:4711"], "2001:db8::1"),
        (["::ffff:192.0.2.1"], "192.0.2.1"),
        (["fe80::1%whatever"], "fe80::1"),
        (["1.1.1.1, 192.0.2.1"], "192.0.2.1"),
        (["1.1.1.1", "192.0.2.1"], "192.0.2.1"),
        (["192.0.2.1, 10.1.2.3"], "192.0.2.1"),
        (["192.0.2.1, 2001:db8:ffff::7, 10.1.2.3"], "192.0.2.1"),
        (["10.0.0.1, 10.0.0.2"], "10.0.0.1"),
        (["nonsense"], "127.0.0.1"),
        (["192.0.2.1, nonsense"], "127.0.0.1"),
        (["192.0.2.1, unknown, 10.0.0.9"], "10.0.0.9"),
        (["192.0.2.1, "], "127.0.0.1"),
        ([""], "127.0.0.1"),
        (["\xff" * 8000], "127.0.0.1"),
        (["," * 8000], "127.0.0.1"),
    ],
)
def test_the_client_is_the_last_untrusted_address(forwarded: list[str], client: str) -> None:
    """Invalid addresses are never used."""
    assert resolved(*forwarded)[0] == client


def test_the_scheme_of_a_trusted_proxy_is_used() -> None:
    """The last valid scheme counts."""
    assert resolved(proto="https")[1] == "https"
    assert resolved(proto="https, http")[1] == "http"
    assert resolved(proto="https", kind="websocket")[1] == "wss"
    assert resolved(proto="gopher")[1] == "http"


def test_unix_sockets_are_trusted_only_with_the_entry_unix() -> None:
    """They have no address."""
    assert TrustedProxies(("unix",)).trusts(None)
    assert not TrustedProxies(parse_proxies(PROXIES)).trusts(None)
    assert not TrustedProxies(("unix",)).trusts("127.0.0.1")


def report(connection: HTTPConnection) -> dict[str, str]:
    client = connection.client
    assert client is not None
    return {"client": client.host, "scheme": connection.url.scheme}


async def show(request: Request) -> Response:
    return JSONResponse(report(request))


async def show_socket(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_json(report(socket))
    await socket.close()


def add_client_routes(api: Api) -> None:
    """Add routes that return the client."""
    api.app.router.routes += [Route("/client", show), WebSocketRoute("/client", show_socket)]


HEADERS = {"x-forwarded-for": "192.0.2.7", "x-forwarded-proto": "https"}


@pytest.mark.parametrize(("trusted", "expected"), [((), ("127.0.0.1", "http")), (PROXIES, ("192.0.2.7", "https"))])
async def test_headers_of_untrusted_proxies_are_ignored(
    settings: Settings, graph: Graph, trusted: tuple[str, ...], expected: tuple[str, str]
) -> None:
    """By default all proxies are untrusted, even on this machine, over HTTP and WebSocket."""
    client, scheme = expected
    async with serving(settings.model_copy(update={"trusted_proxies": trusted}), graph) as api:
        add_client_routes(api)
        response = await api.client.get("/client", headers=HEADERS)
        assert response.json() == {"client": client, "scheme": scheme}

        raw = await Raw.open(api)
        await raw.send(
            b"GET /client HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        await raw.until(b"\r\n\r\n")
        told = (await raw.frame())[1].decode()
        assert client in told
        assert scheme.replace("http", "ws") in told


async def test_production_warns_about_ignored_headers(
    settings: Settings, graph: Graph, caplog: pytest.LogCaptureFixture
) -> None:
    """It warns once: the clients of an untrusted proxy share its limits."""
    production = Settings.model_validate(settings.model_dump() | {"env": "production"})
    async with serving(production, graph) as api:
        for _ in range(3):
            raw = await Raw.open(api)
            await raw.send(post("{ __typename }", "X-Forwarded-For: 192.0.2.1"))
            assert (await raw.response())[0] == 200
    [warning] = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert "FANLINE_TRUSTED_PROXIES=127.0.0.1" in warning
