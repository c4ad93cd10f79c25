"""WebSocket connections: uvicorn's, kept small, with limits on what a client sends and how fast it reads."""

import asyncio
import math
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.frames import Frame
from websockets.http11 import Request

from server.transport.connections import Connections
from server.transport.limits import CONTROL_BURST, CONTROL_RATE, MAX_FRAGMENTS, MAX_HEAD, SOCKET_SLICE
from server.transport.responses import refusal
from server.transport.sending import still_unsent, unsent

LOOK_SECONDS = 30.0  # between two looks at whether a connection that is closing has ended
POLICY_VIOLATION = 1008
INVALID_DATA = 1007


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
        """Remove and return the oldest item; wait if there is none."""
        while not self._items:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._items.pop(0)

    def empty(self) -> bool:
        """Return True if nothing waits."""
        return not self._items


class SocketProtocol(WebSocketsSansIOProtocol):
    """A connection for a WebSocket, which keeps no more than it needs: most are idle.

    What arrives is parsed in small slices, and only while the application has taken all earlier messages and the
    client reads what it is sent; until then reading pauses.
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
        self.queue = Inbox()  # type: ignore[assignment]  # it has what is used of a queue
        self._open: Connections = Connections.of(app_state)
        self.deadline = math.inf
        self._unread = b""
        self._unsent = self._after_close = 0
        self._controls = CONTROL_BURST
        self._counted_at = 0.0

    # Beginning and end

    def connection_made(self, transport: Any) -> None:
        """Take over from the connection that read the handshake."""
        super().connection_made(transport)
        self._open.hand_over(transport.get_protocol(), self)
        self.deadline = self.loop.time() + LOOK_SECONDS

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._open.remove(self)
        self._unread = b""
        super().connection_lost(exc)

    def handle_connect(self, event: Request) -> None:
        """Begin the handshake."""
        super().handle_connect(event)
        if self.response.status_code != 101:
            self._open.refused["handshake"] += 1
        elif self._open.proxies.trusts(self.client[0] if self.client else None):
            self._open.proxies.apply(self.scope)  # type: ignore[arg-type]  # a TypedDict

    async def send(self, message: Any) -> None:
        """Send a message; after the handshake, forget the headers."""
        await super().send(message)
        if message["type"] == "websocket.accept":
            self.request.headers.clear()
            self.response.headers.clear()
            self._read_on()
        elif self._unread:
            self._read_on()

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

    # What arrives

    def data_received(self, data: bytes) -> None:
        """Read frames, as many as there is room for."""
        if self.close_sent:
            self._after_close += len(data)
            if self._after_close > MAX_HEAD:
                return self.transport.abort()
        self._unread += data
        return self._read_on()

    def _read_on(self) -> None:
        """Parse what has arrived, slice by slice; pause reading while something is left."""
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
        """Wait for the next message. Between messages that wait already, others have their turn."""
        if not self.queue.empty():
            await asyncio.sleep(0)
        message = await self.queue.get()
        if self.read_paused and self.queue.empty():
            self.read_paused = False
            self._read_on()
        return message

    def _refuse_handshake(self) -> None:
        """Answer a handshake that could not be parsed; the parser knows the answer to some."""
        self._open.refused["handshake"] += 1
        self.transport.write(b"".join(self.conn.data_to_send()) or refusal(400))
        self.close_sent = self.handshake_complete = True
        self.transport.close()

    def handle_ping(self) -> None:
        """Answer a ping, unless there are too many."""
        if self._allows_control():
            super().handle_ping()

    def handle_pong(self, event: Frame) -> None:
        """Take a pong, unless there are too many."""
        if self._allows_control():
            super().handle_pong(event)

    def _allows_control(self) -> bool:
        """Count a control frame: CONTROL_BURST at once, CONTROL_RATE a second."""
        if self.close_sent:
            return False
        now = self.loop.time()
        self._controls = min(CONTROL_BURST, self._controls + (now - self._counted_at) * CONTROL_RATE) - 1
        self._counted_at = now
        if self._controls < 0:
            self._fail(POLICY_VIOLATION, "Too many control frames.", "control_frames")
        return self._controls >= 0

    def handle_cont(self, event: Frame) -> None:
        """Take a part of a message, unless it has too many."""
        if self.close_sent:
            return
        if len(self.frames) >= MAX_FRAGMENTS:
            self._fail(POLICY_VIOLATION, f"A message has more than {MAX_FRAGMENTS} fragments.", "fragments")
        else:
            super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """Queue a message for the application, and read no more until it is taken."""
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
        """Wait for a client that does not read; read nothing of it meanwhile."""
        super().pause_writing()
        self._unsent = unsent(self.transport)
        self.deadline = self.loop.time() + self._open.timeouts.write
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        """Go on with a client that reads again."""
        super().resume_writing()
        self._unsent = 0
        self.deadline = self.loop.time() + LOOK_SECONDS
        self._read_on()

    def expire(self, now: float) -> None:
        """Cut off a client that does not read; else look again later."""
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
        self.deadline = now + (self._open.timeouts.write if waits else LOOK_SECONDS)
        return None
