"""What uvicorn does with a connection, where the server has to leave at once or to hold many thousands."""

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

BREAK_OFF = "break_off"  # what a stream puts into the state of its request: how to end it when the server goes down


class HttpProtocol(HttpToolsProtocol):
    """A connection for requests. On shutdown, those under way are waited for, but not those that have no end."""

    def shutdown(self) -> None:
        """Let the request under way be answered; end a response that is a stream."""
        super().shutdown()
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            return
        break_off: Callable[[], None] | None = cycle.scope["state"].get(BREAK_OFF)
        if break_off is None:
            return
        if self.flow.write_paused:
            self.transport.abort()  # its client does not read
        else:
            break_off()


class Inbox:
    """A queue for one reader, as small as the protocol lets it be: asyncio's holds four deques, 3 KB."""

    __slots__ = ("_items", "_waiter")

    def __init__(self) -> None:
        self._items: list[Any] = []
        self._waiter: asyncio.Future[None] | None = None

    def put_nowait(self, item: Any) -> None:
        """Add an item, and wake the reader."""
        self._items.append(item)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def get(self) -> Any:
        """Take the oldest item; wait if there is none."""
        while not self._items:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._items.pop(0)

    def empty(self) -> bool:
        """Tell whether nothing waits."""
        return not self._items


class SocketProtocol(WebSocketsSansIOProtocol):
    """A connection for a WebSocket, which keeps no more than it needs: most are idle."""

    request: Request

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self.queue = Inbox()  # type: ignore[assignment]  # it has what is used of a queue
        super().connection_made(transport)

    async def send(self, message: Any) -> None:
        """Send a message; after the handshake, forget the headers."""
        await super().send(message)
        if message["type"] == "websocket.accept":
            self.request.headers.clear()
            self.response.headers.clear()

    def shutdown(self) -> None:
        """Close with 1012; without waiting, if the client does not read."""
        super().shutdown()
        self._drop_if_stalled()

    def keepalive_timeout(self) -> None:
        """Close a socket whose client has not answered pings, for whatever reason."""
        super().keepalive_timeout()
        self._drop_if_stalled()

    def _drop_if_stalled(self) -> None:
        if not self.writable.is_set():
            self.transport.abort()
