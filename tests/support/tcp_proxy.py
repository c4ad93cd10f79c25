"""A proxy between a client and a store that splits, delays, corrupts or cuts replies."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

CHUNK = 1 << 20
TURNS = 4  # event-loop iterations in which a client in the same loop reads what was sent

Forward = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


async def whole(data: bytes, client: asyncio.StreamWriter) -> None:
    """Forward replies unchanged."""
    client.write(data)


class TcpProxy:
    """A proxy in front of a store's Unix socket. `replies` forwards the data of the store."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.port = 0
        self.connections = 0
        self.replies: Forward = whole
        self.clients: set[asyncio.StreamWriter] = set()
        self.open = asyncio.Event()
        self.open.set()

    async def serve(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        """Serve one connection until either side closes it."""
        self.connections += 1
        self.clients.add(client)
        try:
            store_reader, store = await asyncio.open_unix_connection(self.target, limit=CHUNK)
        except OSError:
            client.close()
            return
        ways = [
            asyncio.ensure_future(self.forth(reader, store)),
            asyncio.ensure_future(self.back(store_reader, client)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            self.clients.discard(client)
            client.close()
            store.close()

    async def forth(self, reader: asyncio.StreamReader, store: asyncio.StreamWriter) -> None:
        """Forward commands while `open` is set."""
        with contextlib.suppress(OSError):
            while True:
                await self.open.wait()
                if not (data := await reader.read(CHUNK)):
                    return
                await self.open.wait()
                store.write(data)

    async def back(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        """Forward replies with `replies`."""
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                await self.replies(data, client)

    def half_close(self) -> None:
        """Close the writing side of all connections to clients, and continue reading."""
        for client in self.clients:
            client.write_eof()


@asynccontextmanager
async def proxy_to(target: Path, context: ssl.SSLContext | None = None) -> AsyncIterator[TcpProxy]:
    """Run a proxy on a free port, with TLS if there is a context."""
    proxy = TcpProxy(target)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, ssl=context, limit=CHUNK)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        proxy.open.set()
        server.close()
        for client in list(proxy.clients):
            client.transport.abort()
        await server.wait_closed()
        for _ in range(TURNS):
            await asyncio.sleep(0)


def split_at(*places: int) -> Forward:
    """Forward the next replies in pieces that end at these places. Each arrives separately."""
    left = list(places)
    passed = 0

    async def forward(data: bytes, client: asyncio.StreamWriter) -> None:
        nonlocal passed
        while left and left[0] < passed + len(data):
            piece, data = data[: left[0] - passed], data[left[0] - passed :]
            passed = left.pop(0)
            client.write(piece)
            for _ in range(TURNS):
                await asyncio.sleep(0)
        passed += len(data)
        client.write(data)

    return forward
