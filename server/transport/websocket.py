"""WebSocket connections: uvicorn's protocol with lower memory use, and limits on data, frames and slow clients."""

import asyncio
import math
from collections.abc import Coroutine
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.frames import Frame
from websockets.http11 import Request

from server.transport.connections import Connections
from server.transport.limits import CONTROL_BURST, CONTROL_RATE, MAX_FRAGMENTS, MAX_HEAD, SOCKET_SLICE
from server.transport.responses import error_response
from server.transport.sending import still_unsent, unsent

CHECK_SECONDS = 30.0  # between two checks of whether a closing connection has closed
SEND_TEXT = "fanline.send_text"  # the ASGI extension that sends a text message encoded in UTF-8
SEND_NOW = "fanline.send_now"  # the same, but without waiting for the client
POLICY_VIOLATION = 1008
INVALID_DATA = 1007


class MessageQueue:
    """A queue for one reader that takes little memory. An asyncio.Queue takes 3 KB, because it has four deques."""

    __slots__ = ("_items", "_waiter")

    def __init__(self) -> None:
        self._items: list[Any] = []
        self._waiter: asyncio.Future[None] | None = None

    def put_nowait(self, item: Any) -> None:
        """Add an item and wake the reader."""
        self._items.append(item)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def get(self) -> Any:
        """Remove and return the oldest item. Wait for one if the queue is empty."""
        while not self._items:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._items.pop(0)

    def empty(self) -> bool:
        """Return True if the queue is empty."""
        return not self._items


class SocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket connection that takes little memory, because most connections are idle.

    Data is parsed in small slices. Reading pauses while the application has not received all earlier messages, and
    while the client does not read.
    """

    __slots__ = ("_after_close", "_controls", "_counted_at", "_open", "_unread", "_unsent", "deadline")

    request: Request

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.queue = MessageQueue()  # type: ignore[assignment]  # it has the methods that are used
        self._open: Connections = Connections.of(app_state)
        self.deadline = math.inf
        self._unread = b""
        self._unsent = self._after_close = 0
        self._controls = CONTROL_BURST
        self._counted_at = 0.0

    # Start and end

    def connection_made(self, transport: Any) -> None:
        """Replace the HTTP connection, which has received the handshake."""
        super().connection_made(transport)
        self._open.replace(transport.get_protocol(), self)
        self.deadline = self.loop.time() + CHECK_SECONDS

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection."""
        self._open.remove(self)
        self._unread = b""
        super().connection_lost(exc)

    def handle_connect(self, event: Request) -> None:
        """Start the handshake."""
        super().handle_connect(event)
        if self.response.status_code != 101:
            self._open.refused["handshake"] += 1
        elif self._open.proxies.trusts(self.client[0] if self.client else None):
            self._open.proxies.apply(self.scope)  # type: ignore[arg-type]  # a TypedDict
        if self.response.status_code == 101 and not self.conn.extensions:
            self.scope["extensions"][SEND_TEXT] = self.send_text  # type: ignore[assignment]  # own extension
            self.scope["extensions"][SEND_NOW] = self.send_now  # type: ignore[assignment]

    async def send(self, message: Any) -> None:
        """Send an ASGI message. After the handshake, free the memory of its headers."""
        await super().send(message)
        if message["type"] == "websocket.accept":
            self.request.headers.clear()
            self.response.headers.clear()
            self._parse_unread()
        elif self._unread:
            self._parse_unread()

    def send_text(self, text: bytes) -> Coroutine[Any, Any, None] | None:
        """Send a text message that is already encoded in UTF-8. Raises ClientDisconnected.

        Return None if the message is sent, or a coroutine to await if the client does not read. Cheaper than `send`,
        which would decode and encode the text.
        """
        if not self.writable.is_set():
            return self._send_text_later(text)
        if not self.send_now(text):
            raise ClientDisconnected
        return None

    def send_now(self, text: bytes) -> bool:
        """Send a text message in UTF-8, or return False if the client does not read or the socket is closing."""
        if not self.writable.is_set() or self.disconnected or self.close_sent or self.transport.is_closing():
            return False
        self.transport.write(text_frame(text))
        if self._unread:
            self._parse_unread()
        return True

    async def _send_text_later(self, text: bytes) -> None:
        await self.writable.wait()
        if (later := self.send_text(text)) is not None:
            await later

    def shutdown(self) -> None:
        """Close the socket with code 1012, or abort the connection if the client does not read.

        If the socket is already closing because the client has closed it, uvicorn's method would raise InvalidState,
        which would abort the shutdown of the process.
        """
        if not self.transport.is_closing():
            super().shutdown()
        self._drop_if_stalled()

    def keepalive_timeout(self) -> None:
        """Close a socket whose client has not answered a ping."""
        super().keepalive_timeout()
        self._drop_if_stalled()

    def _drop_if_stalled(self) -> None:
        if not self.writable.is_set():
            self.transport.abort()

    # Frames

    def data_received(self, data: bytes) -> None:
        """Parse frames within the limits. Once the socket has been closed, abort if the client keeps sending."""
        if self.close_sent:
            self._after_close += len(data)
            if self._after_close > MAX_HEAD:
                return self.transport.abort()
        self._unread += data
        return self._parse_unread()

    def _parse_unread(self) -> None:
        """Parse the received data in slices. Pause reading while some of it cannot be parsed yet."""
        data, at = self._unread, 0
        while at < len(data) and self._has_room():
            super().data_received(data[at : at + SOCKET_SLICE] if len(data) > SOCKET_SLICE else data)
            at += SOCKET_SLICE
            if not self.handshake_initiated and self.conn.handshake_exc is not None:
                self._refuse_handshake()
        self._unread = data[at:]
        if self.transport.is_closing():
            self._unread = b""
        elif self._unread or not self._has_room():
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def _has_room(self) -> bool:
        if self.read_paused or not self.writable.is_set() or self.transport.is_closing():
            return False
        return self.handshake_complete or not self.handshake_initiated

    async def receive(self) -> Any:
        """Return the next message for the application. Yields to the event loop between queued messages."""
        if not self.queue.empty():
            await asyncio.sleep(0)
        message = await self.queue.get()
        if self.read_paused and self.queue.empty():
            self.read_paused = False
            self._parse_unread()
        return message

    def _refuse_handshake(self) -> None:
        """Answer an invalid handshake with the parser's response, or with status 400 if there is none, and close."""
        self._open.refused["handshake"] += 1
        self.transport.write(b"".join(self.conn.data_to_send()) or error_response(400))
        self.close_sent = self.handshake_complete = True
        self.transport.close()

    def handle_ping(self) -> None:
        """Answer a ping, unless the client exceeds the rate limit for control frames."""
        if self._allows_control():
            super().handle_ping()

    def handle_pong(self, event: Frame) -> None:
        """Handle a pong, unless the client exceeds the rate limit for control frames."""
        if self._allows_control():
            super().handle_pong(event)

    def _allows_control(self) -> bool:
        """Return True if a control frame is within CONTROL_BURST and CONTROL_RATE. Close the socket if it is not."""
        if self.close_sent:
            return False
        now = self.loop.time()
        self._controls = min(CONTROL_BURST, self._controls + (now - self._counted_at) * CONTROL_RATE) - 1
        self._counted_at = now
        if self._controls < 0:
            self._fail(POLICY_VIOLATION, "Too many control frames. Send fewer.", "control_frames")
        return self._controls >= 0

    def handle_cont(self, event: Frame) -> None:
        """Add a fragment to a message. Close the socket if the message exceeds MAX_FRAGMENTS."""
        if self.close_sent:
            return
        if len(self.frames) >= MAX_FRAGMENTS:
            self._fail(POLICY_VIOLATION, f"A message exceeds the limit of {MAX_FRAGMENTS} fragments.", "fragments")
        else:
            super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """Queue a message for the application, and pause parsing until the application has received it."""
        data = b"".join(self.frames)
        self.frames = []
        if self.close_sent:
            return None
        if self.curr_msg_data_type == "text":
            try:
                self.queue.put_nowait({"type": "websocket.receive", "text": data.decode()})
            except UnicodeDecodeError:
                return self._fail(INVALID_DATA, "A text message is not UTF-8.", "malformed")
        else:
            self.queue.put_nowait({"type": "websocket.receive", "bytes": data})
        self.read_paused = True
        return None

    def _fail(self, code: int, reason: str, counted: str) -> None:
        self._open.refused[counted] += 1
        self.conn.fail(code, reason)
        self.handle_parser_exception()

    # Deadlines

    def pause_writing(self) -> None:
        """Start the write timeout and pause reading, because the client does not read."""
        super().pause_writing()
        self._unsent = unsent(self.transport)
        self.deadline = self.loop.time() + self._open.timeouts.write
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        """End the write timeout and resume reading, because the client reads again."""
        super().resume_writing()
        self._unsent = 0
        self.deadline = self.loop.time() + CHECK_SECONDS
        self._parse_unread()

    def expire(self, now: float) -> None:
        """Abort the connection if the client has stopped reading; otherwise set the time of the next check."""
        waits = self.transport.is_closing() or not self.writable.is_set()
        if waits and self._unsent:
            rest = still_unsent(self.transport, self._unsent)
            if rest is None:
                self._open.refused["write_timeout"] += 1
                self.deadline = math.inf
                return self.transport.abort()
            self._unsent = rest
        elif waits:
            self._unsent = max(1, unsent(self.transport))
        self.deadline = now + (self._open.timeouts.write if waits else CHECK_SECONDS)
        return None


def text_frame(text: bytes) -> bytes:
    """Return the frame of a text message from a server: https://www.rfc-editor.org/rfc/rfc6455#section-5.2."""
    size = len(text)
    if size < 126:
        return b"\x81%c%b" % (size, text)
    if size < 1 << 16:
        return b"\x81\x7e%b%b" % (size.to_bytes(2, "big"), text)
    return b"\x81\x7f%b%b" % (size.to_bytes(8, "big"), text)
