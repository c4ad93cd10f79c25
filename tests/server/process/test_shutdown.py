"""Graceful shutdown as clients see it: each transport ends in its own way, and no client delays another."""

import asyncio
import json
import logging
import socket as sockets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, closing

import httpx
import pytest
from websockets.frames import Frame, Opcode

from graph import Graph
from graph.log.events import PostPublished
from server.auth import Tokens
from server.settings import Settings
from server.transport.http import HttpProtocol
from server.transport.websocket import SocketProtocol
from tests.server.conftest import KEY, Api, events, serving, until
from tests.support.graph_worlds import PATIENCE

LIVE = "subscription { homeTimeline { cursor } }"
PAGE = "viewer { homeTimeline { entries(first: 100) { nodes { ... on Post { text } } } } }"
LARGE = f"{{ {' '.join(f'a{number}: {PAGE}' for number in range(40))} }}"  # 12 MB
Ask = Callable[[sockets.socket, str], Awaitable[None]]
HANDSHAKE = (
    b"GET /graphql HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Protocol: graphql-transport-ws\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


@pytest.fixture
async def patient(settings: Settings, graph: Graph) -> AsyncIterator[Api]:
    """Serve an application whose graceful shutdown has no time limit."""
    unbounded = settings.model_copy(update={"max_response": 100_000_000, "max_cost": 1_000_000})
    async with serving(unbounded, graph) as api:
        short, api.server.config.timeout_graceful_shutdown = api.server.config.timeout_graceful_shutdown, None
        yield api
        api.server.config.timeout_graceful_shutdown = short


def request(token: str, query: str, accept: str) -> bytes:
    """Return a request as bytes."""
    body = json.dumps({"query": query})
    head = f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return f"POST /graphql HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n{head}\r\n\r\n{body}".encode()


async def listen(api: Api, token: str) -> list[str]:
    """Subscribe over server-sent events, and return the names of all events when the stream ends."""
    async with api.stream(LIVE, token) as response, aclosing(events(response)) as streamed:
        return [event.name async for event in streamed]


async def shut_down(api: Api) -> None:
    """Shut the server down. Raises TimeoutError if it waits for a client."""
    async with asyncio.timeout(PATIENCE):
        await api.server.shutdown()


async def test_sockets_and_streams_end_at_once_and_requests_are_answered(
    patient: Api, caplog: pytest.LogCaptureFixture
) -> None:
    """Sockets close with 1012, streams end without `complete` so that clients reconnect, and nothing is logged."""
    api, token = patient, await patient.token("alice")
    reader, writer = await asyncio.open_connection("127.0.0.1", httpx.URL(api.url).port)
    async with api.socket(token) as idle, api.socket(token) as socket, api.open_socket() as silent:
        await socket.subscribe("1", LIVE)
        listening = asyncio.create_task(listen(api, token))
        writer.write(request(token, "{ viewer { user { login } } }", "application/json")[:-1])
        await until(lambda: len(api.server.server_state.tasks) == 5 and len(api.app.state.graph.feed) == 2)

        ending = asyncio.create_task(shut_down(api))
        assert await listening == ["next"]
        for each in (idle, socket, silent):
            assert (await each.closed())[0] == 1012
        assert not ending.done()
        writer.write(b"}")
        assert (await reader.read()).endswith(b'{"data":{"viewer":{"user":{"login":"alice"}}}}')
        writer.close()
        await ending
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_socket_that_its_client_is_closing_does_not_stop_the_shutdown(patient: Api) -> None:
    """The test passes the frame to the connection directly: it closes within one event-loop iteration."""
    async with patient.socket(await patient.token("alice")):
        (connection,) = patient.server.server_state.connections
        assert isinstance(connection, SocketProtocol)
        connection.data_received(Frame(Opcode.CLOSE, b"\x03\xe8").serialize(mask=True))
        await shut_down(patient)
        assert not patient.server.server_state.connections


async def test_new_connections_are_refused_after_a_shutdown(patient: Api) -> None:
    await shut_down(patient)
    with pytest.raises(OSError, match="refused"):
        async with patient.open_socket():
            pass


async def by_socket(connection: sockets.socket, token: str) -> None:
    """Request a large response over a WebSocket."""
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(connection, HANDSHAKE)
    assert await loop.sock_recv(connection, 1000)
    for message in (
        {"type": "connection_init", "payload": {"authorization": f"Bearer {token}"}},
        {"type": "subscribe", "id": "1", "payload": {"query": LARGE}},
    ):
        frame = Frame(Opcode.TEXT, json.dumps(message).encode())
        await loop.sock_sendall(connection, frame.serialize(mask=True))


async def by_stream(connection: sockets.socket, token: str) -> None:
    """Request a large response as an event stream."""
    await asyncio.get_running_loop().sock_sendall(connection, request(token, LARGE, "text/event-stream"))


def stalled(api: Api) -> bool:
    """Return True if the server waits for a client to read."""
    return any(
        (isinstance(connection, SocketProtocol) and not connection.writable.is_set())
        or (isinstance(connection, HttpProtocol) and connection.flow.write_paused)
        for connection in api.server.server_state.connections
    )


@asynccontextmanager
async def not_reading(api: Api, ask: Ask) -> AsyncIterator[None]:
    """Request a large response and do not read it. The block starts when the server cannot write more."""
    session = await api.session("alice")
    await api.graph.commit([PostPublished(session.user, "好" * 1000) for _ in range(100)])
    with closing(sockets.socket()) as connection:
        connection.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", httpx.URL(api.url).port))
        await ask(connection, Tokens([KEY]).issue(session))
        await until(lambda: stalled(api))
        yield


@pytest.mark.parametrize("ask", [by_socket, by_stream])
async def test_a_client_that_does_not_read_does_not_delay_the_shutdown(patient: Api, ask: Ask) -> None:
    """The connection is dropped, because the response cannot be delivered."""
    async with not_reading(patient, ask):
        await shut_down(patient)
        assert not patient.server.server_state.connections


async def test_a_socket_whose_client_answers_no_pings_is_dropped(patient: Api) -> None:
    """The connection is dropped even if the server cannot write to it."""
    async with not_reading(patient, by_socket):
        [connection] = patient.server.server_state.connections
        assert isinstance(connection, SocketProtocol)
        connection.ping_timeout = 0.01
        connection.send_keepalive_ping()
        await until(lambda: not patient.server.server_state.connections)
        await until(lambda: not patient.server.server_state.tasks)
