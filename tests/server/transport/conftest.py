"""Raw connections to a real server with short timeouts."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import ClassVar

import pytest
from websockets.frames import Frame, Opcode

from graph import Graph
from server.settings import Settings
from server.transport.limits import Timeouts
from tests.server.conftest import Api, serving
from tests.support.graph_worlds import PATIENCE

FAST = 0.15
LONG = Timeouts(check=0.02)
LIVE = "subscription { homeTimeline { cursor } }"
HANDSHAKE = (
    b"GET /graphql HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Protocol: graphql-transport-ws\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


class Raw:
    """A TCP connection, which is closed at the end of its test."""

    opened: ClassVar[list["Raw"]] = []

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened.append(self)
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, api: Api) -> "Raw":
        """Connect to the server."""
        return cls(*await asyncio.open_connection("127.0.0.1", int(api.url.rpartition(":")[2])))

    async def send(self, *chunks: bytes) -> int:
        """Send chunks until the server stops reading. Return the number of bytes sent."""
        sent = 0
        for chunk in chunks:
            try:
                self.writer.write(chunk)
                async with asyncio.timeout(PATIENCE):
                    await self.writer.drain()
            except ConnectionError:
                break
            sent += len(chunk)
        return sent

    async def send_frames(self, *frames: Frame) -> int:
        """Send WebSocket frames."""
        return await self.send(b"".join(frame.serialize(mask=True) for frame in frames))

    async def response(self) -> tuple[int, bytes]:
        """Return the status and body of one response with a known length."""
        head = await self.until(b"\r\n\r\n")
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        async with asyncio.timeout(PATIENCE):
            body = await self.reader.readexactly(int(lengths[0][15:]) if lengths else 0)
        return int(head.split()[1]), body

    async def until(self, text: bytes) -> bytes:
        """Return the data up to a text."""
        async with asyncio.timeout(PATIENCE):
            return await self.reader.readuntil(text)

    async def rest(self) -> bytes:
        """Return the data up to the end of the connection."""
        received = b""
        try:
            async with asyncio.timeout(PATIENCE):
                while more := await self.reader.read(65536):
                    received += more
        except ConnectionError:
            pass
        return received

    async def upgrade(self) -> None:
        """Upgrade to a WebSocket."""
        await self.send(HANDSHAKE)
        assert b" 101 " in await self.until(b"\r\n\r\n")

    async def frame(self) -> tuple[Opcode, bytes]:
        """Return the next short frame of the server."""
        async with asyncio.timeout(PATIENCE):
            first, length = await self.reader.readexactly(2)
            if length == 126:
                length = int.from_bytes(await self.reader.readexactly(2))
            return Opcode(first & 15), await self.reader.readexactly(length)

    async def close_code(self) -> int:
        """Return the code of the close frame, skipping other frames."""
        while True:
            opcode, data = await self.frame()
            if opcode is Opcode.CLOSE:
                return int.from_bytes(data[:2])

    def close(self) -> None:
        """Reset the connection."""
        self.writer.transport.abort()


def post(query: str = "{ __typename }", *headers: str) -> bytes:
    """Return the bytes of a POST request."""
    body = json.dumps({"query": query}).encode()
    lines = ("POST /graphql HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {len(body)}")
    return "\r\n".join((*lines, *headers, "", "")).encode() + body


def limit_times(api: Api, **seconds: float) -> None:
    """Set the timeouts of connections."""
    api.app.state.connections.timeouts = replace(LONG, **seconds)


def refused(api: Api) -> dict[str, int]:
    """Return the counts of refusals."""
    return dict(api.app.state.connections.refused)


@pytest.fixture(autouse=True)
async def closing_all() -> AsyncIterator[None]:
    """Close every connection after the test."""
    yield
    await close_all()


async def close_all() -> None:
    """Close every connection."""
    for raw in Raw.opened:
        raw.close()
    Raw.opened.clear()
    await asyncio.sleep(0)


@pytest.fixture
async def api(settings: Settings, graph: Graph) -> AsyncIterator[Api]:
    """Serve an application that checks its deadlines often."""
    async with serving(settings, graph) as api:
        limit_times(api)
        yield api


@pytest.fixture
async def raw(api: Api) -> Raw:
    """Open a connection."""
    return await Raw.open(api)
