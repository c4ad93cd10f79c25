"""Server-sent events: the results of one operation as a stream that clients can resume.

Implements the "distinct connections mode" of GraphQL over SSE:
https://github.com/graphql/graphql-over-http/blob/main/rfcs/GraphQLOverSSE.md. The id of an event is its cursor. A
client that reconnects with `Last-Event-ID` resumes after that event.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TypeAlias

import orjson
from starlette.types import Receive, Scope, Send
from strawberry.http import GraphQLHTTPResponse
from strawberry.types import ExecutionResult

from graph.errors import SessionOver
from graph.paging import CursorKind, encode_cursor
from server.auth import BadToken
from server.endpoint.callers import unauthenticated
from server.endpoint.responses import EVENT_STREAM, Headers, HttpResponse
from server.errors import UNAUTHENTICATED, was_executed
from server.operations.caller import Caller
from server.operations.subscriptions import StreamedResult
from server.transport.admission import Permit
from server.transport.http import END_STREAM

HEADERS = (
    (b"content-type", EVENT_STREAM.encode()),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),  # otherwise nginx buffers events
)
COMPLETE = b"event: complete\ndata: \n\n"

ChangedCookie: TypeAlias = Callable[[int], Awaitable[list[tuple[bytes, bytes]]]]


class EventStream:
    """A response that ends when the operation ends, the viewer's token expires, or the client disconnects.

    The response starts when the first result is available, so that its status can be 401 if the session has ended. When
    the server shuts down, the stream ends immediately without the event `complete`, so clients reconnect. `permit` is
    released when the response starts. `changed_cookie(status)` returns the headers that change the session cookie.
    """

    permit: Permit | None = None

    def __init__(
        self, results: AsyncGenerator[StreamedResult, None], caller: Caller, changed_cookie: ChangedCookie
    ) -> None:
        self._results = results
        self._caller = caller
        self._changed_cookie = changed_cookie
        self._cookie: Headers = ()
        self._end = COMPLETE
        self._started = False
        self._ended = False
        self._streaming: asyncio.Task[None] | None = None

    async def send(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        """Send the stream until it ends or the client disconnects. `headers` are added to the stream's own headers."""
        scope["state"][END_STREAM] = self._end_early
        streaming = asyncio.create_task(self._stream(scope, receive, send, headers))
        expiry = self._schedule_expiry()
        try:
            while (await receive())["type"] != "http.disconnect":
                pass
        finally:
            self._release()
            if expiry:
                expiry.cancel()
            streaming.cancel()
            await asyncio.wait([streaming])
        if not streaming.cancelled():  # it is cancelled if the client disconnects before the task starts
            streaming.result()

    async def _stream(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        """Send the events, then the end of the stream. The end is sent even if the task is cancelled."""
        self._streaming = asyncio.current_task()
        refusal = None
        try:
            async with aclosing(self._results) as results:
                while not self._ended and (streamed := await anext(results, None)):
                    if not self._started:
                        refusal = self._refusal(streamed.result)
                        self._cookie = await self._changed_cookie(401 if refusal else 200)
                        if refusal:
                            break
                    event = _event(streamed.payload or orjson.dumps(response_of(streamed.result)), streamed.number)
                    await self._send(send, headers, event, more_body=True)
        except asyncio.CancelledError:
            pass  # ended early, or the client has disconnected
        except Exception:
            self._end = b""
            raise
        finally:
            if refusal:
                await refusal.send(scope, receive, send, [*self._cookie, *headers])
            else:
                await self._send(send, headers, self._end, more_body=False)

    async def _send(self, send: Send, headers: Headers, body: bytes, *, more_body: bool) -> None:
        if not self._started:
            self._started = True
            self._release()
            started = [*HEADERS, *self._cookie, *headers]
            await send({"type": "http.response.start", "status": 200, "headers": started})
        await send({"type": "http.response.body", "body": body, "more_body": more_body})

    def _release(self) -> None:
        if self.permit is not None:
            self.permit.release()

    def _refusal(self, result: ExecutionResult) -> HttpResponse | None:
        """Return the response to send instead of the stream if the session has ended, or else None."""
        for error in result.errors or ():
            if isinstance(error.original_error, BadToken | SessionOver):
                return HttpResponse.of(unauthenticated(error.original_error).response(self._caller.request_id))
        return None

    def _end_early(self, end: bytes = b"") -> None:
        self._end, self._ended = end, True
        if self._streaming:
            self._streaming.cancel()

    def _schedule_expiry(self) -> asyncio.TimerHandle | None:
        """Schedule the stream's end at the expiry of the viewer's token. Return the timer, or None without a viewer.

        If the token came in a cookie, the stream ends without `complete`, so that the client reconnects: its session
        may have been extended.
        """
        viewer = self._caller.viewer
        if viewer is None:
            return None
        seconds = (viewer.expires_at - datetime.now(UTC)).total_seconds()
        later = asyncio.get_running_loop().call_later
        if self._caller.from_cookie:
            return later(seconds, self._end_early)
        extensions = {"code": UNAUTHENTICATED, "requestId": self._caller.request_id}
        error = {"message": "The access token has expired. Log in again.", "extensions": extensions}
        return later(seconds, self._end_early, _event(orjson.dumps({"errors": [error]})) + COMPLETE)


def response_of(result: ExecutionResult) -> GraphQLHTTPResponse:
    """Return the GraphQL response for a result. If nothing was executed, the response has no `data`."""
    response: GraphQLHTTPResponse = {}
    if result.errors:
        response["errors"] = [error.formatted for error in result.errors]
    if was_executed(result):
        response["data"] = result.data
    if result.extensions:
        response["extensions"] = result.extensions
    return response


def _event(response: bytes, number: int | None = None) -> bytes:
    """Return one event of the stream. If `number` is given, its cursor becomes the id of the event.

    Neither JSON nor cursors contain line breaks, so a single data line is enough.
    """
    head = b"" if number is None else f"id: {encode_cursor(CursorKind.LOG, number)}\n".encode()
    return head + b"event: next\ndata: " + response + b"\n\n"
