"""Timeouts of silent and slow connections."""

import asyncio
import json
import socket as sockets
from contextlib import closing
from datetime import timedelta

import pytest

from graph.log.events import PostPublished
from server.auth import Tokens
from server.settings import Settings
from tests.server.conftest import KEY, Api, Clock, until
from tests.server.transport.conftest import FAST, HANDSHAKE, LONG, Raw, limit_times, post, refused

PAGE = "viewer { homeTimeline { entries(first: 100) { nodes { ... on Post { text } } } } }"
MUCH = f"{{ {' '.join(f'a{number}: {PAGE}' for number in range(30))} }}"  # 9 MB


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Allow responses larger than all buffers."""
    return settings.model_copy(
        update={"max_response": 100_000_000, "max_cost": 1_000_000, "deadline": timedelta(minutes=1)}
    )


async def test_a_silent_connection_is_closed(api: Api) -> None:
    """No response is sent, because browsers open connections in advance."""
    limit_times(api, head=FAST)
    raw = await Raw.open(api)
    assert await raw.rest() == b""
    assert refused(api) == {"header_timeout": 1}
    assert not api.server.server_state.connections


@pytest.mark.parametrize("request_", [post(), HANDSHAKE])
async def test_slow_headers_time_out(api: Api, request_: bytes, clock: Clock) -> None:
    """The timeout starts with the request and is not extended by data. It applies to handshakes as well."""
    limit_times(api)
    raw = await Raw.open(api)
    sent = 0
    while sent < 100 and not raw.reader._buffer:  # type: ignore[attr-defined]  # no answer yet
        await raw.send(request_[sent : sent + 1])
        sent += 1
        clock.advance(LONG.head / 15)
        await asyncio.sleep(0.01)
    assert 1 < sent < 100
    assert (await raw.response())[0] == 408
    assert refused(api) == {"header_timeout": 1}


async def test_each_request_has_its_own_timeout(api: Api, clock: Clock) -> None:
    """Between requests, a longer timeout applies."""
    limit_times(api)
    raw = await Raw.open(api)
    await raw.send(post())
    assert (await raw.response())[0] == 200
    clock.advance(2 * LONG.head)
    await asyncio.sleep(2 * LONG.check)
    await raw.send(post())
    assert (await raw.response())[0] == 200
    await raw.send(b"POST ")
    [connection] = api.app.state.connections._open
    await until(lambda: connection.deadline <= clock.now() + LONG.head)
    clock.advance(LONG.head)
    assert (await raw.response())[0] == 408


async def test_an_idle_connection_is_closed(api: Api) -> None:
    """Line breaks between requests do not keep it open."""
    limit_times(api, idle=FAST)
    raw = await Raw.open(api)
    await raw.send(post())
    assert (await raw.response())[0] == 200
    await raw.send(b"\r\n\r\n")
    assert await raw.rest() == b""
    assert refused(api) == {}


async def test_a_slow_body_times_out(api: Api) -> None:
    """Data does not extend the timeout. The application is notified of the disconnect."""
    limit_times(api, body=FAST)
    raw = await Raw.open(api)
    await raw.send(post()[:-10])
    assert (await raw.response())[0] == 408
    assert refused(api) == {"body_timeout": 1}
    await until(lambda: not api.server.server_state.tasks)


async def test_an_incomplete_request_does_not_abort_an_earlier_response(api: Api) -> None:
    """A stream continues although half a request has followed it."""
    limit_times(api)
    token = await api.token("alice")
    raw = await Raw.open(api)
    await until(lambda: len(api.app.state.connections) == 1)
    limit_times(api, head=FAST, linger=FAST)  # from now on: the first request may take longer
    query = "subscription { homeTimeline { cursor ... on PostAdded { post { text } } } }"
    await raw.send(post(query, "Accept: text/event-stream", f"Authorization: Bearer {token}") + b"POST /gra")
    await raw.until(b"event: next")
    await until(lambda: refused(api) == {"header_timeout": 1})
    await asyncio.sleep(2 * FAST)
    await api.ask('mutation { publishPost(input: {text: "still here"}) { __typename } }', token)
    await raw.until(b"still here")
    raw.close()


async def ask_for_much(api: Api, connection: sockets.socket, *headers: str) -> None:
    """Send a request whose response is larger than all buffers."""
    session = await api.session("alice")
    await api.graph.commit([PostPublished(session.user, "好" * 1000) for _ in range(100)])
    connection.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
    connection.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(connection, ("127.0.0.1", int(api.url.rpartition(":")[2])))
    token = Tokens([KEY]).issue(session)
    await loop.sock_sendall(connection, post(MUCH, f"Authorization: Bearer {token}", *headers))


@pytest.mark.parametrize("connection_header", ["keep-alive", "close"])
async def test_a_client_that_does_not_read_is_aborted(api: Api, connection_header: str) -> None:
    """This holds whether the connection would be kept or closed after the response."""
    limit_times(api, write=FAST)
    with closing(sockets.socket()) as connection:
        await ask_for_much(api, connection, f"Connection: {connection_header}")
        await until(lambda: refused(api) == {"write_timeout": 1})
        await until(lambda: not api.server.server_state.connections)


async def test_a_slow_reader_gets_the_whole_response(api: Api, clock: Clock) -> None:
    """The reader must make progress within the timeout."""
    limit_times(api, idle=FAST)
    with closing(sockets.socket()) as connection:
        await ask_for_much(api, connection)
        received = 0
        while more := await asyncio.get_running_loop().sock_recv(connection, 1 << 18):
            received += len(more)
            if received < 400_000:  # slowly for three times as long as it has
                clock.advance(3 * LONG.write * len(more) / 400_000)
                await asyncio.sleep(0.01)
    assert received > 8_000_000
    assert refused(api) == {}


async def test_a_socket_that_does_not_read_is_aborted(api: Api) -> None:
    limit_times(api, write=FAST)
    session = await api.session("alice")
    await api.graph.commit([PostPublished(session.user, "好" * 1000) for _ in range(100)])
    token = Tokens([KEY]).issue(session)
    async with api.socket(token) as socket:
        transport = socket.connection.transport
        transport.pause_reading()
        await socket.connection.send(json.dumps({"type": "subscribe", "id": "1", "payload": {"query": MUCH}}))
        await until(lambda: refused(api) == {"write_timeout": 1})
        await until(lambda: not api.server.server_state.connections)
        transport.abort()
