"""HTTP connections: uvicorn's, with limits on what a client sends, how fast, and how fast it reads."""

import asyncio
import math
from collections.abc import Callable
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from server.transport.connections import ADDRESS, Connections
from server.transport.limits import (
    HTTP_SLICE,
    MAX_DISCARDED,
    MAX_HEAD,
    MAX_HEADER,
    MAX_HEADERS,
    MAX_PIPELINED,
    MAX_PIPELINED_BODIES,
    MAX_URL,
)
from server.transport.responses import refusal
from server.transport.sending import still_unsent, unsent

BREAK_OFF = "break_off"  # what a stream puts into the state of its request: how to end it when the server goes down
AWAITING, HEAD, BODY = range(3)  # what is read next: a request, the rest of its headers, the rest of its body


class Refusal(Exception):
    """A request breaks a limit; `reason` is the one that is counted."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason


class HttpProtocol(HttpToolsProtocol):
    """A connection for requests.

    On shutdown, requests under way are waited for, but not responses that have no end. A request that breaks a limit
    is refused after those before it on the connection have been answered, and the connection ends.
    """

    __slots__ = (
        "_discarded",  # bytes thrown away since nothing more is read of this connection; None while it is read
        "_open",
        "_overhead",  # bytes received for a request, its body aside
        "_phase",
        "_queued",  # bytes in the bodies of requests that wait
        "_running",  # the request that is being answered
        "_slice",
        "_stale",  # the deadline is that of an earlier phase
        "_trusted",
        "_unsent",
        "deadline",
    )

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._open: Connections = Connections.of(app_state)
        self.deadline = math.inf
        self._phase = AWAITING
        self._stale = self._trusted = False
        self._overhead = self._slice = self._queued = self._unsent = 0
        self._discarded: int | None = None
        self._running: RequestResponseCycle | None = None

    # Beginning and end

    def connection_made(self, transport: Any) -> None:
        """Begin, unless the process or the address has too many connections."""
        super().connection_made(transport)
        host = self.client[0] if self.client else None
        self._trusted = self._open.proxies.trusts(host)
        self.deadline = self.loop.time() + self._open.timeouts.head
        reason = self._open.add(self, host, transport.get_extra_info("socket").fileno())
        if reason is not None:
            if reason == ADDRESS:
                transport.write(refusal(429, "retry-after: 60"))
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the request that is being answered; forget those that wait."""
        self._open.remove(self)
        self.pipeline.clear()
        if self._running is not None:
            _tell(self._running)
            self._running = None
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Let the request under way be answered; end a response that is a stream."""
        running = self._running
        if running is None:
            return self._close()
        running.keep_alive = False
        if running is not self.cycle:
            self.pipeline.clear()
            self._stop_reading()
        break_off: Callable[[], None] | None = running.scope["state"].get(BREAK_OFF)
        if break_off is None:
            return None
        if self.flow.write_paused:
            return self.transport.abort()  # its client does not read
        return break_off()

    # What arrives

    def data_received(self, data: bytes) -> None:
        """Read requests, as long as none breaks a limit."""
        if self._discarded is not None:
            self._discarded += len(data)
            if self._discarded > MAX_DISCARDED:
                self.transport.abort()
        elif len(data) <= HTTP_SLICE:
            self._feed(data)
        else:
            view = memoryview(data)
            for start in range(0, len(view), HTTP_SLICE):
                if not self._feed(view[start : start + HTTP_SLICE]):
                    break
        if self._phase == AWAITING and self._running is not None and not self.flow.write_paused:
            self.deadline = math.inf  # as nearly always: the request has come as a whole
        elif self._stale:
            self._set_deadline()

    def _feed(self, data: bytes | memoryview) -> bool:
        """Parse some bytes; return False if the rest is not to be parsed."""
        self._slice = len(data)
        self._overhead += self._slice
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            return self._upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            cause = error.__context__
            self._refuse(cause if isinstance(cause, Refusal) else Refusal(400, "malformed"))
            return False
        if self._phase != AWAITING or self._overhead > MAX_HEAD:
            return self._stays_small()
        return True

    def _stays_small(self) -> bool:
        """Refuse what is too long before it is complete; return False then."""
        most = MAX_DISCARDED if self._discards_body() else MAX_HEAD
        if self._overhead > most or (self._phase == HEAD and len(self.headers) > MAX_HEADERS):
            self._refuse(Refusal(431, "headers"))
            return False
        return True

    def _discards_body(self) -> bool:
        """Return True while the rest of a request is read that has been answered already."""
        return self._phase == BODY and self.cycle.response_complete

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._phase = HEAD
        self._overhead = self._slice
        if self.cycle is not None:  # the first one has its time from the beginning of the connection
            self._stale = True

    def on_url(self, url: bytes) -> None:
        """Take a part of the URL."""
        self.url += url
        if len(self.url) > MAX_URL:
            raise Refusal(414, "url")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; ignore trailers, which come after the body."""
        if len(value) > MAX_HEADER:
            raise Refusal(431, "headers")
        if self._phase == BODY:
            return
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Start answering a request, or queue it behind those before it."""
        if len(self.headers) > MAX_HEADERS or (self._overhead > MAX_HEAD and self._head_size() > MAX_HEAD):
            raise Refusal(431, "headers")
        if len(self.pipeline) >= MAX_PIPELINED:
            raise Refusal(400, "pipeline")
        last: RequestResponseCycle | None = self.cycle
        super().on_headers_complete()
        if self.cycle is last:  # it asks for an upgrade: the parser raises when it has read all of it
            if self.scope["method"] == "CONNECT":
                raise Refusal(400, "malformed")
            return
        if self.pipeline:
            self.flow.resume_reading()  # or nobody would notice that the client leaves
        else:
            self._running = self.cycle
        if self._trusted:
            self._open.proxies.apply(self.scope)  # type: ignore[arg-type]  # a TypedDict
        elif last is None:
            self._open.proxies.warn_of(self.headers, self.client[0] if self.client else None)
        self._phase = BODY
        self._stale = True

    def _should_upgrade(self) -> bool:
        return True  # to what, is decided when the whole request has been read

    def _head_size(self) -> int:
        """Return the size of the headers; `_overhead` may contain some of the request before."""
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        cycle = self.cycle
        if cycle.response_complete:
            return
        self._overhead -= len(body)
        if cycle is not self._running:
            self._queued += len(body)
            if self._queued > MAX_PIPELINED_BODIES:
                raise Refusal(400, "pipeline")
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        """End a request."""
        if self._phase != BODY:
            return  # it asks for an upgrade
        self._phase = AWAITING
        self._overhead = 0
        self._stale = True
        if not self.cycle.response_complete:
            self.cycle.more_body = False
            self.cycle.message_event.set()

    def _upgrade(self, rest: bytes | memoryview) -> bool:
        """Become a WebSocket; ignore an upgrade to anything else, as RFC 9110 has it."""
        if self._running is not None:
            self._refuse(Refusal(400, "pipeline"))
            return False
        if self.parser.get_http_version() == "1.1" and self._get_upgrade() == b"websocket":
            self.handle_websocket_upgrade()
            self.parser = None  # type: ignore[assignment]  # it refers to this object
            if rest:
                self.transport.get_protocol().data_received(bytes(rest))  # type: ignore[attr-defined]
            return False
        head = self._head_without_upgrade()
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return self._feed(head + bytes(rest))

    def _head_without_upgrade(self) -> bytes:
        version = self.parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)]
        for name, value in self.headers:
            if name == b"connection":
                options = [option.strip() for option in value.split(b",")]
                value = b", ".join(option for option in options if option.lower() != b"upgrade")
            if name != b"upgrade":
                lines.append(b"%b: %b" % (name, value))
        return b"\r\n".join([*lines, b"", b""])

    # What is answered

    def on_response_complete(self) -> None:
        """Go on with the next request, or wait for it."""
        self.server_state.total_requests += 1
        self._running = None
        if self.transport.is_closing():
            return self._close()
        self.flow.resume_reading()
        if self.pipeline:
            self._running, app = self.pipeline.pop()
            if not self.pipeline:
                self._queued = 0
            self._start_asgi_task(self._running, app)
        if self._phase == AWAITING:
            if self._discarded is None and self._running is None and not self.flow.write_paused:
                self.deadline = self.loop.time() + self._open.timeouts.idle
            else:
                self._set_deadline()
        return None

    def _refuse(self, refused: Refusal) -> None:
        """Read no more; answer what came before, then this, and end the connection."""
        self._open.refused[refused.reason] += 1
        unanswered = True
        if self._phase == BODY:
            cycle = self.cycle
            if cycle is self._running:
                unanswered = not cycle.response_started
                _tell(cycle)
                self._running = None
            elif cycle.response_complete:
                unanswered = False
            else:
                self.pipeline.popleft()
        last = self.pipeline[0][0] if self.pipeline else self._running
        self._stop_reading()
        if last is not None:
            last.keep_alive = False
        elif unanswered and not self.transport.is_closing():
            self.transport.write(refusal(refused.status))
            self.transport.write_eof()
        else:
            self._close()

    def _stop_reading(self) -> None:
        """Throw away what the client still sends, so that its end is noticed."""
        self._discarded = 0
        self.flow.resume_reading()
        self._set_deadline()

    # Deadlines

    def pause_writing(self) -> None:
        """Wait for a client that does not read."""
        super().pause_writing()
        self._unsent = unsent(self.transport)
        self.deadline = self.loop.time() + self._open.timeouts.write

    def resume_writing(self) -> None:
        """Go on with a client that reads again."""
        super().resume_writing()
        self._set_deadline()

    def _set_deadline(self) -> None:
        self._stale = False
        if self.flow.write_paused or self.transport.is_closing():
            return  # the deadline is the client's, to read
        timeouts = self._open.timeouts
        if self._phase == HEAD and self._discarded is None:
            seconds = timeouts.head
        elif self._phase == BODY and self._discarded is None:
            seconds = timeouts.body
        elif self._running is not None:
            seconds = math.inf
        else:
            seconds = timeouts.idle if self._discarded is None else timeouts.linger
        self.deadline = self.loop.time() + seconds

    def expire(self, now: float) -> None:
        """Refuse a request that is late, close an idle connection, cut off a client that does not read."""
        if self.flow.write_paused or self.transport.is_closing():
            rest = still_unsent(self.transport, self._unsent)
            self.deadline = now + self._open.timeouts.write
            if rest is None:
                self._open.refused["write_timeout"] += 1
                return self.transport.abort()
            self._unsent = rest
            return None
        if self._discarded is not None or (self._phase == AWAITING and self.cycle is not None):
            return self._close()
        if self._phase == AWAITING:  # it never sent a byte, as a browser's connection in advance
            self._open.refused["header_timeout"] += 1
            return self._close()
        return self._refuse(Refusal(408, "header_timeout" if self._phase == HEAD else "body_timeout"))

    def _close(self) -> None:
        """Close as soon as the client has taken what it was sent."""
        self._unsent = unsent(self.transport)
        self.deadline = self.loop.time() + self._open.timeouts.write
        self.transport.close()


def _tell(cycle: RequestResponseCycle) -> None:
    """Tell the application that the client has gone."""
    if not cycle.response_complete:
        cycle.disconnected = True
        cycle.waiting_for_100_continue = False  # nothing more may be written, not even that the body is welcome
    cycle.message_event.set()
