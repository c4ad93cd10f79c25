"""What lies between clients and servers and can be cut: served processes, and a proxy in front of them."""

import asyncio
import contextlib
import signal
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from tests.server.cli.test_commands import CLEAN, FANLINE, free_port

RESET = struct.pack("ii", 1, 0)  # to linger for no time: closing sends RST, and what was not sent is lost
CHUNK = 65536


class Server:
    """`fanline serve` in a process of its own, on a port that it keeps when it is started again."""

    def __init__(self, log: Path, **environment: str) -> None:
        self.port = free_port()
        self._log = log
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it, and wait until it answers."""
        with self._log.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *FANLINE,
                "serve",
                "--port",
                str(self.port),
                env=CLEAN | self._environment,
                stdout=output,
                stderr=output,
            )
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}") as client:
            while True:
                assert self._process.returncode is None, self._log.read_text()
                with contextlib.suppress(httpx.TransportError):
                    if (await client.get("/health/ready")).status_code == 200:
                        return
                await asyncio.sleep(0.05)

    async def end(self, how: signal.Signals) -> None:
        """Send it a signal, and wait until it has ended."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(how)
            await self._process.wait()


class Proxy:
    """Passes connections on to a port of this machine, until it is told to reset or to freeze them."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        self._open: set[asyncio.StreamWriter] = set()

    def cut(self) -> int:
        """Reset all connections, in both directions; tell how many clients had one."""
        ends = [writer for writer in self._open if not writer.is_closing()]
        for writer in ends:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            writer.transport.abort()
        return len(ends) // 2

    def freeze(self) -> None:
        """Pass on nothing more of what is connected now, without telling anybody."""
        for writer in self._open:
            writer.transport.pause_reading()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, until either side ends it."""
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        ends = {writer, there_writer}
        self._open |= ends
        ways = [asyncio.ensure_future(copy(reader, there_writer)), asyncio.ensure_future(copy(there_reader, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._open -= ends
            for way in ways:
                way.cancel()
            for end in ends:
                end.close()


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what comes, until nothing does."""
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def proxied(target: int) -> AsyncIterator[Proxy]:
    """Run a proxy on a free port."""
    proxy = Proxy(target)
    server = await asyncio.start_server(proxy.connect, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut()
        await server.wait_closed()
