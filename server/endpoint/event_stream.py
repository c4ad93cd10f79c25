"""Server-sent events: the results of one operation as a stream, which a client that lost it can take up again.

https://github.com/graphql/graphql-over-http/blob/main/rfcs/GraphQLOverSSE.md, "distinct connections". Each event of a
subscription has its cursor as its id; a client that comes back names the last one in `Last-Event-ID`.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime

import orjson
from starlette.types import Receive, Scope, Send
from strawberry.http import GraphQLHTTPResponse
from strawberry.types import ExecutionResult

from graph.paging import CursorKind, encode_cursor
from server.endpoint.responses import EVENT_STREAM, Headers
from server.errors import UNAUTHENTICATED
from server.operations.caller import Caller
from server.operations.execution import StreamedResult, was_executed
from server.transport.http import BREAK_OFF

HEADERS = (
    (b"content-type", EVENT_STREAM.encode()),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),  # or nginx would keep events back
)
COMPLETE = b"event: complete\ndata: \n\n"


class EventStream:
    """A response that lasts until the operation, the viewer's token or the client's patience ends.

    When the server goes down it ends at once, without the event `complete`: so clients know that they have to come
    back.
    """

    def __init__(self, results: AsyncGenerator[StreamedResult, None], caller: Caller) -> None:
        self._results = results
        self._caller = caller
        self._last_words = COMPLETE
        self._broken_off = False
        self._streaming: asyncio.Task[None] | None = None

    async def send(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        """Send the stream, with the headers that every response has, until it ends or the client disconnects."""
        scope["state"][BREAK_OFF] = self._break_off
        await send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, *headers]})
        streaming = asyncio.create_task(self._stream(send))
        expiry = self._await_expiry()
        try:
            while (await receive())["type"] != "http.disconnect":
                pass
        finally:
            if expiry:
                expiry.cancel()
            streaming.cancel()
            await asyncio.wait([streaming])
        if not streaming.cancelled():  # as it is if the client was gone before the first step
            streaming.result()

    async def _stream(self, send: Send) -> None:
        """Send event by event; then, or when it is cancelled, the last words."""
        self._streaming = asyncio.current_task()
        try:
            async with aclosing(self._results) as results:
                while not self._broken_off and (streamed := await anext(results, None)):
                    event = _event(shaped(streamed.result), streamed.number)
                    await send({"type": "http.response.body", "body": event, "more_body": True})
        except asyncio.CancelledError:
            pass  # it was broken off, or nobody listens
        except Exception:
            self._last_words = b""
            raise
        finally:
            await send({"type": "http.response.body", "body": self._last_words, "more_body": False})

    def _break_off(self, last_words: bytes = b"") -> None:
        self._last_words, self._broken_off = last_words, True
        if self._streaming:
            self._streaming.cancel()

    def _await_expiry(self) -> asyncio.TimerHandle | None:
        """End the stream with the viewer's token."""
        viewer = self._caller.viewer
        if viewer is None:
            return None
        extensions = {"code": UNAUTHENTICATED, "requestId": self._caller.request_id}
        error = {"message": "The access token has expired. Log in again.", "extensions": extensions}
        seconds = (viewer.expires_at - datetime.now(UTC)).total_seconds()
        return asyncio.get_running_loop().call_later(seconds, self._break_off, _event({"errors": [error]}) + COMPLETE)


def shaped(result: ExecutionResult) -> GraphQLHTTPResponse:
    """Shape a result whose errors are coded; one that was never executed has no data at all."""
    response: GraphQLHTTPResponse = {}
    if result.errors:
        response["errors"] = [error.formatted for error in result.errors]
    if was_executed(result):
        response["data"] = result.data
    return response


def _event(response: GraphQLHTTPResponse, number: int | None = None) -> bytes:
    """Return one event, with the cursor of the log entry as its id. Neither JSON nor cursors contain line breaks."""
    head = b"" if number is None else f"id: {encode_cursor(CursorKind.LOG, number)}\n".encode()
    return head + b"event: next\ndata: " + orjson.dumps(response) + b"\n\n"
