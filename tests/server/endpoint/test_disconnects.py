"""Disconnects of every kind: the server notices at once and keeps nothing."""

import asyncio
import gc
import json
import logging
import os
import socket as sockets
import struct
from collections import Counter
from collections.abc import Awaitable, Callable, Set
from contextlib import aclosing, suppress
from pathlib import Path

import pytest

from graph.log.events import PostPublished
from server.auth import Tokens
from server.endpoint.event_stream import EventStream
from server.endpoint.websocket import SocketHandler, SocketOperation
from server.operations.caller import Caller
from server.transport.http import HttpProtocol
from server.transport.websocket import SocketProtocol
from tests.server.conftest import KEY, Api, Clock, Socket, events
from tests.support.graph_worlds import append_events

LIVE = "subscription { homeTimeline { cursor } }"
HANDSHAKE = (
    b"GET /graphql HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Protocol: graphql-transport-ws\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
VISITS, LONG_VISITS = 150, 1000
DEADLINE = 60  # seconds, longer than that of an operation
KINDS = (SocketHandler, SocketOperation, SocketProtocol, HttpProtocol, EventStream, Caller)

Visit = Callable[[Api, str], Awaitable[None]]


def tear_off(transport: asyncio.WriteTransport) -> None:
    """Reset the TCP connection, as when a phone changes its network."""
    transport.get_extra_info("socket").setsockopt(sockets.SOL_SOCKET, sockets.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


async def listening(socket: Socket, id: str = "1") -> None:
    """Subscribe and wait for the first event."""
    await socket.subscribe(id, LIVE)
    while (await socket.receive()).get("id") != id:
        pass


async def say_nothing(api: Api, token: str) -> None:
    async with api.open_socket():
        pass


async def only_stand_open(api: Api, token: str) -> None:
    async with api.socket(token):
        pass


async def listen(api: Api, token: str) -> None:
    async with api.socket(token) as socket:
        await listening(socket)


async def listen_and_complete(api: Api, token: str) -> None:
    async with api.socket(token) as socket:
        await listening(socket)
        await socket.send(type="complete", id="1")


async def listen_twice_and_tear_off(api: Api, token: str) -> None:
    async with api.socket(token) as socket:
        await listening(socket, "1")
        await listening(socket, "2")
        tear_off(socket.connection.transport)


async def tear_off_while_much_begins(api: Api, token: str) -> None:
    async with api.socket(token) as socket:
        for number in range(5):
            await socket.subscribe(f"{number}", LIVE)
            await socket.subscribe(f"q{number}", "{ viewer { user { login } homeTimeline { id } } }")
        tear_off(socket.connection.transport)


async def tear_off_during_connection_init(api: Api, token: str) -> None:
    async with api.open_socket() as socket:
        await socket.send(type="connection_init", payload={"authorization": f"Bearer {token}"})
        tear_off(socket.connection.transport)


async def tear_off_after(api: Api, sent: bytes, until: bytes = b"") -> None:
    """Send bytes, wait for others if given, and reset the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(api.url.rpartition(":")[2]))
    writer.write(sent)
    await writer.drain()
    if until:
        await reader.readuntil(until)
    tear_off(writer.transport)


async def tear_off_in_the_handshake(api: Api, token: str) -> None:
    await tear_off_after(api, HANDSHAKE[:40])


async def tear_off_after_the_handshake(api: Api, token: str) -> None:
    await tear_off_after(api, HANDSHAKE)


async def be_sent_away(api: Api, token: str) -> None:
    async with api.socket(token) as socket:
        await listening(socket)
        await socket.send(type="nonsense")
        assert (await socket.closed())[0] == 4400


async def stream(api: Api, token: str) -> None:
    async with api.stream(LIVE, token) as response, aclosing(events(response)) as streamed:
        await anext(streamed)


def request(token: str) -> bytes:
    body = json.dumps({"query": LIVE})
    head = f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return f"POST /graphql HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n{head}\r\n\r\n{body}".encode()


async def tear_off_a_stream(api: Api, token: str) -> None:
    await tear_off_after(api, request(token), b"event: next")


async def tear_off_a_stream_that_begins(api: Api, token: str) -> None:
    await tear_off_after(api, request(token))


WAYS: list[Visit] = [
    say_nothing,
    only_stand_open,
    listen,
    listen_and_complete,
    listen_twice_and_tear_off,
    tear_off_while_much_begins,
    tear_off_during_connection_init,
    tear_off_in_the_handshake,
    tear_off_after_the_handshake,
    be_sent_away,
    stream,
    tear_off_a_stream,
    tear_off_a_stream_that_begins,
]


async def crowd(api: Api, token: str, visits: int) -> None:
    """Connect and disconnect many clients in every way, twenty at a time."""
    room = asyncio.Semaphore(20)

    async def come_and_go(visit: Visit) -> None:
        async with room:
            await visit(api, token)

    await asyncio.gather(*(come_and_go(WAYS[number % len(WAYS)]) for number in range(visits)))


def connections() -> set[str]:
    """Return the inodes of the TCP connections of this process, which has none to its own store."""
    inodes = {line.split()[9] for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]}
    targets = []
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the listing itself
            targets.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    return inodes & {target.removeprefix("socket:[").rstrip("]") for target in targets}


def left_behind(api: Api, others: Set[str]) -> dict[str, int]:
    """Return the counts of everything that clients could leave behind: objects, streams, quotas, connections.

    `others` are connections that were open before the clients connected: an earlier test may share servers with later
    ones.
    """
    gc.collect()
    objects = Counter(type(thing).__name__ for thing in gc.get_objects() if isinstance(thing, KINDS))
    held = {
        "streams": len(api.app.state.graph.feed),
        "subscriptions": api.quotas.streams.held,
        "sockets": api.quotas.sockets.held,
        "connections": len(connections() - others),
        **objects,
    }
    return {name: count for name, count in held.items() if count}


def tasks() -> list[str]:
    """Return the names of the running tasks, without commands to the store."""
    names = (getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks())
    return sorted(name for name in names if name != "Store._exchange")


async def pass_deadlines(clock: Clock, gone: Callable[[], bool]) -> None:
    """Advance the clock past the deadlines of operations until `gone` returns True, at most twenty times.

    A timer may keep the objects of an operation until its deadline. The server may notice only after the first advance
    that the client of an operation is gone.
    """
    for _ in range(20):
        clock.advance(DEADLINE)
        for _ in range(20):
            if gone():
                return
            await asyncio.sleep(0.02)


@pytest.mark.skipif(not os.path.exists("/proc/self/net/tcp"), reason="needs Linux to count connections")
async def test_nothing_remains_of_disconnected_clients(
    api: Api, caplog: pytest.LogCaptureFixture, clock: Clock, long_profile: bool
) -> None:
    """They leave nothing behind, in every way of disconnecting, twenty at a time, and no error is logged."""
    token = await api.token("alice")
    others = connections()
    await crowd(api, token, len(WAYS))
    await pass_deadlines(clock, lambda: not left_behind(api, others))
    assert left_behind(api, others) == {}
    before = tasks()
    await crowd(api, token, LONG_VISITS if long_profile else VISITS)
    await pass_deadlines(clock, lambda: not left_behind(api, others) and tasks() == before)
    assert left_behind(api, others) == {}
    assert tasks() == before
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_subscription_keeps_nothing_of_its_events(api: Api) -> None:
    """A subscription may last for days."""
    session = await api.session("alice")
    query = "subscription { homeTimeline { cursor ... on PostAdded { post { id author { login } } } } }"
    async with api.socket(Tokens([KEY]).issue(session)) as socket:
        await socket.subscribe("1", query)
        await socket.receive()
        kept = []
        for _ in range(3):
            logged = await append_events(api.graph, [PostPublished(session.user, "hi")] * 40)
            told = 0
            while told < len(logged):
                message = await socket.receive()
                told += "post" in message["payload"]["data"]["homeTimeline"]
            gc.collect()
            kept.append(sum(type(found).__name__ == "FieldDetails" for found in gc.get_objects()))
    assert kept[2] - kept[1] < 40
