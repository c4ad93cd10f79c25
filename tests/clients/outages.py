"""Server processes that can be killed, and a proxy that can cut the connections to them."""

import asyncio
import contextlib
import os
import signal
import socket
import struct
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import httpx

from server.embedded import EmbeddedStore
from tests.server.cli.test_commands import CLEAN, FANLINE, free_port
from tests.support.graph_worlds import PATIENCE

RESET = struct.pack("ii", 1, 0)  # linger for 0 seconds: closing sends RST and drops unsent data
CHUNK = 65536


class Server:
    """`fanline serve` in its own process, with the same port after a restart."""

    def __init__(self, log: Path, **environment: str) -> None:
        self.port = free_port()
        self._log = log
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process and wait until it is ready."""
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
        """Send a signal and wait until the process has ended."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(how)
            await self._process.wait()


class Proxy:
    """Forwards connections to a local port, and can reset, freeze or refuse them, or WebSockets only."""

    def __init__(self, target: int, listening: socket.socket | None = None) -> None:
        self.target = target
        self.port: int = listening.getsockname()[1] if listening else free_port()
        self._listening = listening
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._websockets: set[asyncio.StreamWriter] = set()
        self._refuses_websockets = False

    @property
    def url(self) -> str:
        """The address of the proxy."""
        return f"http://127.0.0.1:{self.port}"

    async def listen(self) -> None:
        """Accept connections."""
        own = {"sock": self._listening.dup()} if self._listening else {"host": "127.0.0.1", "port": self.port}
        self._server = await asyncio.start_server(self.connect, **own)

    async def close(self) -> None:
        """Reset all connections, and refuse new ones until `listen`."""
        if self._server is not None:
            self._server.close()
            self.cut()
            await self._server.wait_closed()

    def cut(self) -> int:
        """Reset all connections in both directions. Return how many clients were connected."""
        return reset(self._open)

    def refuse_websockets(self) -> int:
        """Reset all WebSockets, including new ones until `accept_websockets`. Return how many there were."""
        self._refuses_websockets = True
        return reset(self._websockets)

    def accept_websockets(self) -> None:
        """Forward new WebSockets again."""
        self._refuses_websockets = False

    def freeze(self) -> None:
        """Stop forwarding on the current connections without closing them."""
        for writer in self._open:
            cast(asyncio.Transport, writer.transport).pause_reading()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection until either side closes it."""
        try:
            target_reader, target_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        ends = {writer, target_writer}
        self._open |= ends
        copies = [
            asyncio.ensure_future(self._send(reader, target_writer, ends)),
            asyncio.ensure_future(copy(target_reader, writer)),
        ]
        try:
            await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._open -= ends
            self._websockets -= ends
            for task in copies:
                task.cancel()
            for end in ends:
                end.close()

    async def _send(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, ends: set[asyncio.StreamWriter]
    ) -> None:
        """Forward what the client sends. The first data shows whether the client opens a WebSocket."""
        with contextlib.suppress(OSError):
            first = await reader.read(CHUNK)
            if b"upgrade: websocket" in first.lower():
                self._websockets |= ends
                if self._refuses_websockets:
                    reset(ends)
                    return
            writer.write(first)
            await writer.drain()
            await copy(reader, writer)


def reset(ends: Iterable[asyncio.StreamWriter]) -> int:
    """Reset connections, given by their two ends. Return how many there were."""
    still_open = [writer for writer in ends if not writer.is_closing()]
    for writer in still_open:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        writer.transport.abort()
    return len(still_open) // 2


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward data until the end of the stream."""
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def proxied(target: int, listening: socket.socket | None = None) -> AsyncIterator[Proxy]:
    """Run a proxy on a listening socket, or on a free port."""
    proxy = Proxy(target, listening)
    await proxy.listen()
    try:
        yield proxy
    finally:
        await proxy.close()


async def restart_store(store: EmbeddedStore) -> None:
    """Kill the embedded store, and wait until the server that uses it has restarted it."""
    killed = store.pid
    os.kill(killed, signal.SIGKILL)
    async with asyncio.timeout(PATIENCE):
        while not _has_restarted(store, killed):  # noqa: ASYNC110 - another thread restarts it
            await asyncio.sleep(0.05)


def _has_restarted(store: EmbeddedStore, killed: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ValueError):  # its file is absent, or still empty
        return store.pid != killed
    return False
