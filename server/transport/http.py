"""HTTP connections: uvicorn's protocol with limits on the size and speed of requests and responses."""

import asyncio
import math
from collections.abc import Callable
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from server.transport.admission import COMPLETE, Admission
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
from server.transport.request_heads import Refusal, check_head, head_without_upgrade, requested_upgrade
from server.transport.responses import error_response, overload_response
from server.transport.sending import still_unsent, unsent

END_STREAM = "end_stream"  # in the state of a request with an endless response: the function that ends it
DRAIN_SECONDS = 2.0  # for which an idle connection stays open on shutdown: a request may already be on its way
AWAITING, HEAD, BODY = range(3)  # what is read next: a request, the rest of its headers, the rest of its body


class HttpProtocol(HttpToolsProtocol):
    """An HTTP connection.

    On shutdown, it waits for running requests but ends endless responses. An idle connection answers one more request
    with `Connection: close`; otherwise a client that sends a request during the shutdown would get no response. A
    request that exceeds a limit is refused after the responses to earlier ones; then the connection closes.
    """

    __slots__ = (
        "_admission",
        "_closes",  # the process is shutting down: the next response is the last one
        "_discarded",  # bytes discarded since the connection stopped parsing; None while it parses
        "_open",
        "_overhead",  # bytes received for a request, without its body
        "_phase",
        "_queued",  # bytes of the bodies of waiting requests
        "_running",  # the request that is being served
        "_slice",
        "_stale",  # the deadline belongs to an earlier phase
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
        self._admission: Admission = Admission.of(app_state)
        self.deadline = math.inf
        self._phase = AWAITING
        self._stale = self._trusted = self._closes = False
        self._overhead = self._slice = self._queued = self._unsent = 0
        self._discarded: int | None = None
        self._running: RequestResponseCycle | None = None

    # Start and end

    def connection_made(self, transport: Any) -> None:
        """Register the connection. Abort it if the process or the client's address has too many connections."""
        super().connection_made(transport)
        host = self.client[0] if self.client else None
        self._trusted = self._open.proxies.trusts(host)
        self.deadline = self.loop.time() + self._open.timeouts.head
        reason = self._open.add(self, host, transport.get_extra_info("socket").fileno())
        if reason is not None:
            if reason == ADDRESS:
                transport.write(error_response(429))
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify the running request of the disconnect, and drop the waiting requests."""
        self._open.remove(self)
        self.pipeline.clear()
        if self._running is not None:
            _notify_disconnect(self._running)
            self._running = None
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close the connection after the running request or, if it is idle, the next one. End an endless response."""
        running = self._running
        self._closes = True
        if running is None:
            self.loop.call_later(DRAIN_SECONDS, self._end_drain)
            return
        running.keep_alive = False
        if running is not self.cycle:
            self.pipeline.clear()
            self._stop_reading()
        self._end_stream(running)

    def _end_stream(self, running: RequestResponseCycle) -> None:
        """End the response to a request if it is endless."""
        end_stream: Callable[[], None] | None = running.scope["state"].get(END_STREAM)
        if end_stream is not None:
            self.transport.abort() if self.flow.write_paused else end_stream()  # abort if the client does not read

    def _end_drain(self) -> None:
        if self._running is not None:
            self._end_stream(self._running)
        elif not self.transport.is_closing():
            self._close()

    # Requests

    def data_received(self, data: bytes) -> None:
        """Parse requests. Once a request has exceeded a limit, discard all further data."""
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
            self.deadline = math.inf  # the usual case: the request has arrived completely
        elif self._stale:
            self._set_deadline()

    def _feed(self, data: bytes | memoryview) -> bool:
        """Parse bytes. Return False if the connection stops parsing."""
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
            return self._check_size()
        return True

    def _check_size(self) -> bool:
        """Return True if the incomplete request is within the limits; otherwise refuse it and return False."""
        limit = MAX_DISCARDED if self._discards_body() else MAX_HEAD
        if self._overhead > limit or (self._phase == HEAD and len(self.headers) > MAX_HEADERS):
            self._refuse(Refusal(431, "headers"))
            return False
        return True

    def _discards_body(self) -> bool:
        """Return True if the body being read belongs to a request that has already been answered."""
        return self._phase == BODY and self.cycle.response_complete

    def on_message_begin(self) -> None:
        """Begin reading a request."""
        super().on_message_begin()
        self._phase = HEAD
        self._overhead = self._slice
        if self.cycle is not None:  # the deadline of the first request starts with the connection
            self._stale = True

    def on_url(self, url: bytes) -> None:
        """Add a part of the URL."""
        self.url += url
        if len(self.url) > MAX_URL:
            raise Refusal(414, "url")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header. Ignore trailers, which follow the body."""
        if len(value) > MAX_HEADER:
            raise Refusal(431, "headers")
        if self._phase == BODY:
            return
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Check the headers of a request, then start it, or queue it behind earlier requests."""
        if len(self.headers) > MAX_HEADERS or (self._overhead > MAX_HEAD and self._head_size() > MAX_HEAD):
            raise Refusal(431, "headers")
        check_head(self.parser.get_http_version(), self.headers)
        if len(self.pipeline) >= MAX_PIPELINED:
            raise Refusal(400, "pipeline")
        last: RequestResponseCycle | None = self.cycle
        super().on_headers_complete()
        if self.cycle is last:  # an upgrade request: the parser raises HttpParserUpgrade at its end
            if self.scope["method"] == "CONNECT":
                raise Refusal(400, "malformed")
            return
        if self.pipeline:
            self.flow.resume_reading()  # otherwise a disconnect goes unnoticed
        elif not self.cycle.response_complete:
            self._running = self.cycle
        if self._trusted:
            self._open.proxies.apply(self.scope)  # type: ignore[arg-type]  # a TypedDict
        elif last is None:
            self._open.proxies.warn_once(self.headers, self.client[0] if self.client else None)
        self._phase = BODY
        self._stale = True

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Start a request, or queue it for admission. Under overload, refuse it before its body is read."""
        if self._closes:
            cycle.keep_alive = False
        if self._admission.admits(cycle, lambda: HttpToolsProtocol._start_asgi_task(self, cycle, app)):
            return None
        if self.flow.write_paused:
            self.transport.abort()  # the client sends requests and does not read the refusals
        self.transport.write(overload_response(cycle, self._admission))
        cycle.response_started = cycle.response_complete = True
        if not cycle.keep_alive:
            self.transport.close()
        return self.on_response_complete()

    def _should_upgrade(self) -> bool:
        return True  # `_upgrade` decides when the request is complete

    def _head_size(self) -> int:
        """Return the size of the headers. `_overhead` may include bytes of the previous request."""
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def on_body(self, body: bytes) -> None:
        """Add a part of the body."""
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
        """Record that a request has arrived completely."""
        if self._phase != BODY:
            return  # an upgrade request
        self._phase = AWAITING
        self._overhead = 0
        self._stale = True
        if not self.cycle.response_complete:
            self.cycle.more_body = False
            self.cycle.scope["state"][COMPLETE] = True
            self.cycle.message_event.set()

    def _upgrade(self, rest: bytes | memoryview) -> bool:
        """Upgrade to a WebSocket. Ignore requests to upgrade to other protocols, as RFC 9110 allows."""
        if self._running is not None:
            self._refuse(Refusal(400, "pipeline"))
            return False
        if self.parser.get_http_version() == "1.1" and requested_upgrade(self.headers) == b"websocket":
            if self._closes:
                self._close()
                return False
            if self._admission.is_full():
                self._refuse(Refusal(503, "overload"))
                return False
            self.handle_websocket_upgrade()
            self.parser = None  # type: ignore[assignment]  # it refers to this object
            if rest:
                self.transport.get_protocol().data_received(bytes(rest))  # type: ignore[attr-defined]
            return False
        version = self.parser.get_http_version()
        head = head_without_upgrade(self.parser.get_method(), self.url, version, self.headers)
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return self._feed(head + bytes(rest))

    # Responses

    def on_response_complete(self) -> None:
        """Serve the next request of the connection, or set the deadline for its arrival."""
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
        """Stop parsing, refuse the request once earlier requests are answered, and close the connection."""
        self._open.refused[refused.reason] += 1
        unanswered = True
        if self._phase == BODY:
            cycle = self.cycle
            if cycle is self._running:
                unanswered = not cycle.response_started
                _notify_disconnect(cycle)
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
            self.transport.write(error_response(refused.status, refused.text))
            self.transport.write_eof()
        else:
            self._close()

    def _stop_reading(self) -> None:
        """Discard further data. Reading continues so that a disconnect is noticed."""
        self._discarded = 0
        self.flow.resume_reading()
        self._set_deadline()

    # Deadlines

    def pause_writing(self) -> None:
        """Start the write timeout, because the client is not reading."""
        super().pause_writing()
        self._unsent = unsent(self.transport)
        self.deadline = self.loop.time() + self._open.timeouts.write

    def resume_writing(self) -> None:
        """End the write timeout, because the client reads again."""
        super().resume_writing()
        self._set_deadline()

    def _set_deadline(self) -> None:
        self._stale = False
        if self.flow.write_paused or self.transport.is_closing():
            return  # the write timeout applies
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
        """Refuse an incomplete request, close an idle connection, or abort it if the client does not read."""
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
        if self._phase == AWAITING:  # no byte has arrived, as with preconnections of browsers
            self._open.refused["header_timeout"] += 1
            return self._close()
        return self._refuse(Refusal(408, "header_timeout" if self._phase == HEAD else "body_timeout"))

    def _close(self) -> None:
        """Close the connection once all data is sent. The write timeout applies."""
        self._unsent = unsent(self.transport)
        self.deadline = self.loop.time() + self._open.timeouts.write
        self.transport.close()


def _notify_disconnect(cycle: RequestResponseCycle) -> None:
    """Notify the application that the client has disconnected."""
    if not cycle.response_complete:
        cycle.disconnected = True
        cycle.waiting_for_100_continue = False  # nothing may be written from now on, not even 100 Continue
    cycle.message_event.set()
