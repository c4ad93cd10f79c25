"""Raw connections to a real server, whose limits of time are short."""

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
    """A TCP connection, which is closed with its test at the latest."""

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
        """Send chunks, as far as the server takes them; return how many bytes it took."""
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
        """Read one response with a known length: its status and body."""
        head = await self.until(b"\r\n\r\n")
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        async with asyncio.timeout(PATIENCE):
            body = await self.reader.readexactly(int(lengths[0][15:]) if lengths else 0)
        return int(head.split()[1]), body

    async def until(self, text: bytes) -> bytes:
        """Read to a text."""
        async with asyncio.timeout(PATIENCE):
            return await self.reader.readuntil(text)

    async def rest(self) -> bytes:
        """Read to the end of the connection."""
        received = b""
        try:
            async with asyncio.timeout(PATIENCE):
                while more := await self.reader.read(65536):
                    received += more
        except ConnectionError:
            pass
        return received

    async def upgrade(self) -> None:
        """Become a WebSocket."""
        await self.send(HANDSHAKE)
        assert b" 101 " in await self.until(b"\r\n\r\n")

    async def frame(self) -> tuple[Opcode, bytes]:
        """Read a short frame of the server."""
        async with asyncio.timeout(PATIENCE):
            first, length = await self.reader.readexactly(2)
            if length == 126:
                length = int.from_bytes(await self.reader.readexactly(2))
            return Opcode(first & 15), await self.reader.readexactly(length)

    async def close_code(self) -> int:
        """Read to the frame that closes the socket; return its code."""
        while True:
            opcode, data = await self.frame()
            if opcode is Opcode.CLOSE:
                return int.from_bytes(data[:2])

    def close(self) -> None:
        """Leave."""
        self.writer.transport.abort()


def post(query: str = "{ __typename }", *headers: str) -> bytes:
    """Write a request."""
    body = json.dumps({"query": query}).encode()
    lines = ("POST /graphql HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {len(body)}")
    return "\r\n".join((*lines, *headers, "", "")).encode() + body


def limit_times(api: Api, **seconds: float) -> None:
    """Give connections other limits of time."""
    api.app.state.connections.timeouts = replace(LONG, **seconds)


def refused(api: Api) -> dict[str, int]:
    """Return what was counted."""
    return dict(api.app.state.connections.refused)


@pytest.fixture(autouse=True)
async def closing_all() -> AsyncIterator[None]:
    """Close every connection at the end."""
    yield
    for raw in Raw.opened:
        raw.close()
    Raw.opened.clear()
    await asyncio.sleep(0)


@pytest.fixture
async def api(settings: Settings, graph: Graph) -> AsyncIterator[Api]:
    """Serve an application that looks at its deadlines often."""
    async with serving(settings, graph) as api:
        limit_times(api)
        yield api


@pytest.fixture
async def raw(api: Api) -> Raw:
    """Open a connection."""
    return await Raw.open(api)
