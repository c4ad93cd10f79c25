"""The listening socket."""

import asyncio
import socket

import pytest

from server.transport.descriptors import ACCEPTED_AT_ONCE, listeners

CLIENTS = 3 * ACCEPTED_AT_ONCE


def test_many_connections_are_accepted_in_an_iteration() -> None:
    """In a busy process, each iteration takes a long time."""
    uvloop = pytest.importorskip("uvloop")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(iterations()) <= 2 * CLIENTS / ACCEPTED_AT_ONCE


async def iterations() -> int:
    """Return the number of iterations until all clients are accepted."""
    loop, accepted, count = asyncio.get_running_loop(), list[asyncio.Protocol](), 0

    class Connection(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted.append(self)
            transport.close()

    with socket.create_server(("127.0.0.1", 0), backlog=CLIENTS) as listening:
        servers = [await loop.create_server(Connection, sock=one) for one in listeners(listening)]
        clients = [socket.create_connection(listening.getsockname()) for _ in range(CLIENTS)]
        while len(accepted) < CLIENTS:
            count += 1
            await asyncio.sleep(0)
        for client in clients:
            client.close()
        for server in servers:
            server.close()
    return count
