"""WebSockets: the handler of one socket with the protocol `graphql-transport-ws`.

https://github.com/graphql/graphql-over-http/blob/main/rfcs/GraphQLOverWebSocket.md. The handler extends Strawberry's:
it validates messages, reports errors of an operation without closing the socket, applies quotas, closes the socket when
the viewer's session ends, and uses little memory for idle sockets, because there may be many thousands.
"""

import asyncio
import contextlib
import math
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

import orjson
from graphql import GraphQLError
from starlette.websockets import WebSocketDisconnect, WebSocketState
from strawberry.asgi import ASGIWebSocketAdapter
from strawberry.http.exceptions import WebSocketDisconnected
from strawberry.subscriptions.protocols.graphql_transport_ws.handlers import BaseGraphQLTransportWSHandler
from strawberry.subscriptions.protocols.graphql_transport_ws.handlers import Operation as BaseOperation
from strawberry.subscriptions.protocols.graphql_transport_ws.types import ConnectionInitMessage, SubscribeMessage
from strawberry.types.execution import ExecutionResult

from graph.errors import SessionOver, StoreUnavailable
from server.auth import BadToken
from server.errors import RATE_LIMITED, Refused, overloaded, was_executed, with_codes
from server.operations.caller import Caller
from server.operations.execution import Execution
from server.operations.operation_request import OperationRequest, parse_request
from server.operations.quotas import QuotaExceeded
from server.operations.subscriptions import SendNow
from server.operations.trusted_documents import TrustedDocuments
from server.transport.admission import PERMIT_OF_TASK, Admission, Permit
from server.transport.websocket import SEND_NOW, SEND_TEXT

PING_SECONDS = 20.0
ANSWER_SECONDS = 1.0  # between the end of a session and the close of its socket, for operations under way
# graphql-transport-ws prescribes the codes 4401, 4408, 4409 and 4429, and the texts of their reasons.
UNAUTHORIZED = 4401
FORBIDDEN = 4403
TOO_LATE = 4408
NOT_UNIQUE = 4409
TOO_MANY_INITS = 4429
TRY_AGAIN_LATER = 1013  # clients reconnect later; after 4429 they would not
MAX_REASON = 123  # bytes, as the WebSocket protocol allows


class Endpoint(Protocol):
    """The parts of the endpoint that a socket uses."""

    execution: Execution
    trusted: TrustedDocuments
    admission: Admission

    def decode_json(self, data: str | bytes) -> object:
        """Parse a message. Raises ValueError if it is not valid JSON."""
        ...


class SocketAdapter(ASGIWebSocketAdapter):
    """The socket of a handler. Closing it twice has no effect."""

    async def receive(self) -> str | bytes | None:
        """Return the next message, or None when the socket has closed."""
        if self.ws.application_state is not WebSocketState.CONNECTED:
            return None
        message = await self.ws.receive()
        text: str | bytes | None = message.get("text", message.get("bytes"))
        return text

    async def send_json(self, message: Any) -> None:
        """Send a message. Raises WebSocketDisconnected if the socket has closed."""
        try:
            await super().send_json(message)
        except RuntimeError as closed:
            raise WebSocketDisconnected from closed

    async def send_text(self, text: bytes) -> None:
        """Send a message that is already encoded as JSON. Raises WebSocketDisconnected if the socket has closed."""
        send = self.ws.scope.get("extensions", {}).get(SEND_TEXT)
        try:
            later = self.ws.send_text(text.decode()) if send is None else send(text)
            if later is not None:
                await later
        except (OSError, RuntimeError, WebSocketDisconnect) as closed:
            raise WebSocketDisconnected from closed

    @property
    def send_now(self) -> Callable[[bytes], bool] | None:
        """The function that sends encoded JSON without waiting, and returns False if the client does not read.

        None if the server that runs the application does not provide it.
        """
        found: Callable[[bytes], bool] | None = self.ws.scope.get("extensions", {}).get(SEND_NOW)
        return found

    async def close(self, code: int, reason: str) -> None:
        """Close the socket. The reason is truncated to `MAX_REASON` bytes, because it may quote the client's text."""
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):
            await super().close(code, reason.encode()[:MAX_REASON].decode(errors="ignore"))


class SocketOperation(BaseOperation[Caller, None]):
    """An operation of a socket. Its first message sets `answered` to True and releases `permit`."""

    __slots__ = ("answered", "explain", "permit")

    handler: "SocketHandler"

    def __init__(
        self, handler: "SocketHandler", id: str, query: str, request: OperationRequest, permit: Permit
    ) -> None:
        super().__init__(handler, id, query, request.variables, request.operation_name)
        self.answered = False
        self.explain = request.explain
        self.permit = permit

    async def send_operation_message(self, message: Any) -> None:
        """Send a message, unless the operation has ended."""
        self.answered = True
        self.permit.release()
        await super().send_operation_message(message)

    async def send_payload(self, payload: bytes) -> None:
        """Send a result that is already JSON, unless the operation has ended. Not to be used for the first result."""
        if not self.completed:
            await self.handler.websocket.send_text(self._message(payload))

    def sending_now(self) -> SendNow | None:
        """Return a function that sends like `send_payload` but never waits, or None if the server provides none."""
        send = self.handler.websocket.send_now
        return None if send is None else partial(self._send_now, send)

    def _send_now(self, send: Callable[[bytes], bool], payload: bytes) -> bool:
        return not self.completed and send(self._message(payload))

    def _message(self, payload: bytes) -> bytes:
        return b'{"id":%b,"type":"next","payload":%b}' % (orjson.dumps(self.id), payload)


class SocketHandler(BaseGraphQLTransportWSHandler[Caller, None]):
    """One socket, from its handshake to its end.

    A single timer is used for the timeout of `connection_init`, then for pings and the expiry of the token.
    """

    view: Endpoint  # type: ignore[assignment] # the base class has Strawberry's own view here
    websocket: SocketAdapter
    operations: dict[str, SocketOperation]  # type: ignore[assignment] # the base class only stores and cancels them
    _timer: asyncio.TimerHandle | None = None
    _background: asyncio.Task[None] | None = None
    _stop_watching: Callable[[], None] | None = None
    _release: Callable[[], None] | None = None

    async def handle(self) -> None:
        """Serve the socket until it closes, then cancel its operations."""
        self._schedule(self.connection_init_wait_timeout.total_seconds(), self._time_out)
        try:
            while (text := await self.websocket.receive()) is not None:
                await self._handle_text(text)
        except WebSocketDisconnected:
            pass
        finally:
            await self.shutdown()

    async def shutdown(self) -> None:
        """Cancel the timer and the operations of this socket, stop watching the session, and release its quota."""
        if self._timer:
            self._timer.cancel()
        if self._background:
            self._background.cancel()
        if self._stop_watching:
            self._stop_watching()
        if self._release:
            self._release()
        await super().shutdown()

    async def _handle_text(self, text: str | bytes) -> None:
        """Handle a message. Close the socket if the message violates the protocol."""
        if isinstance(text, bytes):
            return await self.handle_invalid_message("WebSocket message type must be text")
        try:
            message: Any = self.view.decode_json(text)
        except orjson.JSONDecodeError:
            return await self.handle_invalid_message("WebSocket message must be valid JSON")
        if violation := _violation(message):
            return await self.handle_invalid_message(violation)
        return await self.handle_message(message)

    async def handle_connection_init(self, message: ConnectionInitMessage) -> None:
        """Acknowledge the connection, unless the token is invalid, the quota is exceeded or the process is overloaded.

        In these cases, or if this message was sent before, close the socket.
        """
        if self.connection_init_received:
            await self.websocket.close(TOO_MANY_INITS, "Too many initialisation requests")
            return
        self.connection_init_received = True
        if self._timer:
            self._timer.cancel()
        if self.view.admission.is_full():
            await self.websocket.close(TRY_AGAIN_LATER, overloaded().message)
            return
        try:
            await self._identify(message.get("payload") or {})
            self._release = self.context.quotas.sockets.acquire(self.context.holder)
        except BadToken as bad:
            await self.websocket.close(FORBIDDEN, str(bad))
        except QuotaExceeded:
            await self.websocket.close(TRY_AGAIN_LATER, "Too many WebSockets. Close one first.")
        else:
            await self.send_message({"type": "connection_ack"})
            self.connection_acknowledged = True
            self._schedule_wake()

    async def _identify(self, payload: dict[str, object]) -> None:
        """Set the viewer from the token in the first message or in the handshake, and check the session.

        Raises BadToken if the token is invalid or the session has ended. The session is watched before it is checked,
        so that its end cannot be missed.
        """
        given = {name.lower(): value for name, value in payload.items()}
        caller = self.context
        caller.viewer = caller.tokens.viewer(given.get("authorization", caller.authorization))
        caller.authorization = None
        self._stop_watching = caller.watch_session(self._session_ended)
        with contextlib.suppress(StoreUnavailable):  # each operation checks again and reports the outage
            await caller.check_session()

    async def handle_subscribe(self, message: SubscribeMessage) -> None:
        """Start an operation, unless the message violates the protocol or the socket runs too many operations."""
        id = message["id"]
        limit = self.max_subscriptions_per_connection
        if not self.connection_acknowledged:
            await self.websocket.close(UNAUTHORIZED, "Unauthorized")
        elif id in self.operations:
            await self.websocket.close(NOT_UNIQUE, f"Subscriber for {id} already exists")
        elif limit is not None and len(self.operations) >= limit:
            await self._refuse(
                id, f"This socket is running {limit} operations, which is the limit. End one first.", RATE_LIMITED
            )
        else:
            await self._start(id, message["payload"])

    async def _start(self, id: str, payload: object) -> None:
        """Start an operation, or refuse it if its request is invalid or the process is overloaded.

        Common client libraries do not retry a refused subscription, so the operation first waits for a permit. Later
        messages of the socket wait too.
        """
        permit = await self.view.admission.wait()
        if permit is None:
            refused = overloaded()
            return await self._refuse(id, refused.message, refused.code)
        try:
            request = parse_request(payload)
            query = self.view.trusted.resolve(request)
        except Refused as refused:
            permit.release()
            return await self._refuse(id, refused.message, refused.code)
        operation = self.operations[id] = SocketOperation(self, id, query, request, permit)
        operation.task = asyncio.create_task(self._run(operation))
        operation.task.add_done_callback(lambda _: permit.release())
        return None

    async def cleanup_operation(self, operation_id: str) -> None:
        """Cancel an operation. Results that are still being computed are not sent, because the id may be used again."""
        if operation_id in self.operations:
            self.operations[operation_id].completed = True
        await super().cleanup_operation(operation_id)

    async def _refuse(self, id: str, message: str, code: str) -> None:
        """Send an error for an operation that was not started."""
        errors = with_codes([GraphQLError(message, extensions={"code": code})], self.context.request_id)
        await self.send_message({"id": id, "type": "error", "payload": [error.formatted for error in errors]})

    async def _run(self, operation: SocketOperation) -> None:
        """Send the results and errors of an operation. Only the end of the session closes the socket."""
        PERMIT_OF_TASK.set(operation.permit)
        try:
            await self._stream(operation)
        except WebSocketDisconnected:
            pass  # the client has disconnected
        except Exception as error:
            unexpected = GraphQLError(str(error), original_error=error)
            with contextlib.suppress(WebSocketDisconnected):
                await operation.send_initial_errors(with_codes([unexpected], self.context.request_id))

    async def _stream(self, operation: SocketOperation) -> None:
        results = self.view.execution.stream(
            self.context,
            operation.query,
            operation.variables,
            operation.operation_name,
            explain=operation.explain,
            send_now=operation.sending_now(),
        )
        operation.query, operation.variables = "", None  # they may be long, and nothing reads them again
        async with aclosing(results):
            async for streamed in results:
                if streamed.payload is not None:
                    await operation.send_payload(streamed.payload)
                    continue
                result = streamed.result
                if _ends_session(result):
                    return self._session_ended()
                if was_executed(result):
                    await operation.send_next(result)
                else:
                    await operation.send_initial_errors(result.errors or [])
        return await operation.send_operation_message({"id": operation.id, "type": "complete"})

    def _session_ended(self) -> None:
        self._run_in_background(self._close_after_session())

    async def _close_after_session(self) -> None:
        """Close the socket because its session has ended.

        First wait up to ANSWER_SECONDS for operations that have not answered yet, such as the log-out itself.
        """
        unanswered = [o.task for o in self.operations.values() if o.task and not o.answered]
        if unanswered:
            await asyncio.wait(unanswered, timeout=ANSWER_SECONDS)
        await self.websocket.close(FORBIDDEN, "The session has ended.")

    def _time_out(self) -> None:
        self._run_in_background(self.websocket.close(TOO_LATE, "Connection initialisation timeout"))

    def _schedule_wake(self) -> None:
        """Schedule the next ping, or the expiry of the token if that is sooner."""
        self._schedule(min(self._seconds_left(), PING_SECONDS), self._wake)

    def _wake(self) -> None:
        """Close the socket if the token has expired; otherwise send a ping, unless the last one is still being sent."""
        if self._seconds_left() <= 0:
            return self._run_in_background(self.websocket.close(FORBIDDEN, "The access token has expired."))
        if self._background is None or self._background.done():
            self._run_in_background(self._send_ping())
        return self._schedule_wake()

    def _seconds_left(self) -> float:
        viewer = self.context.viewer
        return (viewer.expires_at - datetime.now(UTC)).total_seconds() if viewer else math.inf

    async def _send_ping(self) -> None:
        with contextlib.suppress(WebSocketDisconnected):
            await self.send_message({"type": "ping"})

    def _schedule(self, seconds: float, then: Callable[[], None]) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, then)

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        self._background = asyncio.create_task(work)


def _ends_session(result: ExecutionResult) -> bool:
    return any(isinstance(error.original_error, SessionOver) for error in result.errors or ())


def _violation(message: Any) -> str | None:
    """Return a description of how a message violates the protocol, or None if the message is valid."""
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        return "A message must be an object with a type"
    if message["type"] == "connection_init" and not isinstance(message.get("payload"), dict | None):
        return "Invalid connection init payload"
    if message["type"] not in ("subscribe", "complete"):
        return None
    if not isinstance(message.get("id"), str) or not 0 < len(message["id"]) <= 100:
        return "An operation needs an id, a string of 1 to 100 characters"
    if message["type"] == "complete":
        return None
    payload = message.get("payload")
    if not isinstance(payload, dict) or not (
        payload.get("query") or "documentId" in payload or payload.get("extensions")
    ):
        return "An operation needs a payload with a query or a documentId"
    if not isinstance(payload.get("query"), str | None) or not isinstance(payload.get("documentId"), str | None):
        return "The query and the documentId of an operation must be strings"
    if not isinstance(payload.get("extensions"), dict | None):
        return "The extensions of an operation must be an object"
    if not isinstance(payload.get("variables"), dict | None):
        return "The variables of an operation must be an object"
    if not isinstance(payload.get("operationName"), str | None):
        return "The operationName of an operation must be a string"
    return None
