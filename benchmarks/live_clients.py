"""Cheap subscribers: only the necessary parts of WebSocket and `graphql-transport-ws`, without libraries.

Messages are encoded once for all subscribers. Incoming messages are distinguished by the bytes they contain, without
parsing.
"""

import asyncio
import json
import re
import socket
import struct
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import cast

DOCUMENT = """subscription {
  homeTimeline {
    __typename cursor
    ... on PostAdded { timelineEdge { node { id author { login } ... on Post { text } } } } ... on Gap { reason }
  }
}"""
HANDSHAKE = (
    b"GET /graphql HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: "
    b"13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"
)
TEXT, CLOSE, PING, PONG = 0x1, 0x8, 0x9, 0xA
SENT_AT = re.compile(rb"sent at (\d+)")
POST, CHECKPOINT, ACKNOWLEDGED, SLOW = b'"PostAdded"', b'"Checkpoint"', b'"connection_ack"', b'"SLOW_CONSUMER"'
FAILURES = (b'"errors"', b'"type":"error"')
TIMEOUT_SECONDS = 60.0
AT_ONCE = 100
ADDRESSES = 8
RECEIVE_BUFFER = 8192  # bytes
SEGMENT = 1400
RESET = struct.pack("ii", 1, 0)


def frame(opcode: int, payload: bytes = b"") -> bytes:
    """Return a client frame, masked with zeros."""
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2)
    return bytes([0x80 | opcode]) + length + bytes(4) + payload


def message(**fields: object) -> bytes:
    """Return a frame with a message of the protocol."""
    return frame(TEXT, json.dumps(fields).encode())


SUBSCRIBE = message(type="subscribe", id="1", payload={"query": DOCUMENT})
COMPLETE = message(type="complete", id="1")
LEAVE = frame(CLOSE, (1000).to_bytes(2))


def init(token: str) -> bytes:
    """Return the first message of a connection, which contains the viewer's token."""
    return message(type="connection_init", payload={"authorization": f"Bearer {token}"})


def stamped(text: str = "") -> str:
    """Return the text of a post with the current time."""
    return f"sent at {time.monotonic_ns()} {text}"


def frames(buffer: bytearray) -> Iterator[tuple[int, bytes]]:
    """Remove complete server frames from a buffer and yield their opcodes and payloads."""
    while len(buffer) >= 2:
        size, start = buffer[1], 2
        if size >= 126:
            start = 4 if size == 126 else 10
            size = int.from_bytes(buffer[2:start])
        if len(buffer) < max(start + size, start):
            return
        opcode, payload = buffer[0] & 0xF, bytes(buffer[start : start + size])
        del buffer[: start + size]
        yield opcode, payload


class Subscriber(asyncio.Protocol):
    """One socket. `latencies`, in seconds, is shared with other subscribers and grows with every delivered post."""

    __slots__ = ("_answer", "_buffer", "_lost", "_open", "_waiter", "latencies", "posts", "slow", "socket", "transport")

    transport: asyncio.Transport

    def __init__(self, connected: socket.socket, latencies: list[float]) -> None:
        self.socket = connected
        self.latencies = latencies
        self.posts = self.slow = 0
        self._open = False
        self._buffer = bytearray()
        self._answer = b""
        self._waiter: asyncio.Future[None] | None = None
        self._lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the upgrade request."""
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, error: Exception | None) -> None:
        """Fail the pending answer, if there is one."""
        self._lost = True
        self._settle(ConnectionError(f"The socket was closed: {error}"))

    def data_received(self, data: bytes) -> None:
        """Process incoming data."""
        now = time.monotonic_ns()
        self._buffer += data
        if not self._open:
            return self._upgrade()
        for opcode, payload in frames(self._buffer):
            if opcode == TEXT:
                self._take(payload, now)
            elif opcode == PING:
                self.transport.write(frame(PONG, payload))
        return None

    def _upgrade(self) -> None:
        head, end, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        if end:
            self._buffer = bytearray(rest)
            self._open = head.startswith(b"HTTP/1.1 101")
            self._settle(None if self._open else ConnectionError(head.decode("latin-1")))

    def _take(self, payload: bytes, now: int) -> None:
        if POST in payload and (sent := SENT_AT.search(payload)):
            self.posts += 1
            self.latencies.append((now - int(sent[1])) / 1e9)
        elif SLOW in payload:
            self.slow += 1
        if any(failure in payload for failure in FAILURES):
            self._settle(RuntimeError(payload.decode()))
        elif self._answer and self._answer in payload:
            self._settle(None)

    def _settle(self, error: Exception | None) -> None:
        waiter, self._waiter, self._answer = self._waiter, None, b""
        if waiter and not waiter.done():
            waiter.set_result(None) if error is None else waiter.set_exception(error)

    async def ask(self, question: bytes, answer: bytes = b"") -> None:
        """Send a message and wait for an answer that contains these bytes.

        Raises ConnectionError, TimeoutError, and RuntimeError if the operation has errors.
        """
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        self._answer = answer
        self.transport.write(question)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await waiter

    async def begin(self, token: str) -> None:
        """Open the WebSocket as this viewer."""
        await self.ask(HANDSHAKE)
        await self.ask(init(token), ACKNOWLEDGED)

    async def subscribe(self) -> None:
        """Subscribe to the home timeline and wait for the first event, a checkpoint."""
        await self.ask(SUBSCRIBE, CHECKPOINT)

    async def leave(self) -> None:
        """Complete the subscription, close the socket, and wait until the server has closed it."""
        try:
            await self.ask(COMPLETE + LEAVE)
        except ConnectionError:
            return

    def reset(self) -> None:
        """Reset the TCP connection without closing the WebSocket."""
        if not self._lost:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self.transport.abort()


async def connect(
    port: int, index: int = 0, latencies: list[float] | None = None, *, narrow: bool = False
) -> Subscriber:
    """Return a new connection from one of several local addresses, because one address has too few ports.

    A narrow connection has packets as small as those of a network. Kernels then buffer much less unread data.
    """
    loop = asyncio.get_running_loop()
    connected = socket.socket()
    try:
        connected.setblocking(False)
        if narrow:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT)
        connected.bind((f"127.0.0.{2 + index % ADDRESSES}", 0))
        await loop.sock_connect(connected, ("127.0.0.1", port))
        subscriber = Subscriber(connected, [] if latencies is None else latencies)
        await loop.create_connection(lambda: subscriber, sock=connected)
    except BaseException:
        connected.close()
        raise
    return subscriber


async def for_each(work: Iterable[Callable[[], Awaitable[None]]], at_once: int = AT_ONCE) -> None:
    """Run these coroutine functions, at most `at_once` at a time. The first error cancels the others."""
    waiting = iter(work)

    async def go_on() -> None:
        for some in waiting:
            await some()

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(go_on())


async def open_all(
    port: int, tokens: Sequence[str], latencies: list[float] | None = None, *, narrow: bool = False
) -> list[Subscriber]:
    """Open a socket for each of these viewers."""
    opened: list[Subscriber] = []

    async def open_one(index: int) -> None:
        subscriber = await connect(port, index, latencies, narrow=narrow)
        opened.append(subscriber)
        await subscriber.begin(tokens[index])

    await for_each(partial(open_one, index) for index in range(len(tokens)))
    return opened


async def subscribe_all(subscribers: Sequence[Subscriber]) -> None:
    """Subscribe with each subscriber."""
    await for_each(subscriber.subscribe for subscriber in subscribers)


async def leave_all(subscribers: Sequence[Subscriber]) -> None:
    """Close each socket after its subscription is complete."""
    await for_each(subscriber.leave for subscriber in subscribers)
