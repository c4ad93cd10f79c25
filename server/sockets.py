"""WebSockets: the protocol `graphql-transport-ws`, one socket at a time.

https://github.com/graphql/graphql-over-http/blob/main/rfcs/GraphQLOverWebSocket.md. Strawberry's handler does the
work; this one checks messages before it uses them, keeps errors of an operation within the operation, and ends the
socket when its viewer's session does.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

from graphql import GraphQLError
from strawberry.subscriptions.protocols.graphql_transport_ws.handlers import (
    BaseGraphQLTransportWSHandler,
    Operation,
    _OperationStreamClosed,
)
from strawberry.subscriptions.protocols.graphql_transport_ws.types import ConnectionInitMessage

from graph.errors import SessionOver
from server.operation import Caller

FORBIDDEN = 4403


class SocketHandler(BaseGraphQLTransportWSHandler[Caller, None]):
    """One socket, from its handshake to its end."""

    _expiry: asyncio.Task[None] | None = None

    async def handle_message(self, message: Any) -> None:
        """Act on a message, or end the socket if it is not one of the protocol."""
        if isinstance(message, dict) and message.get("type") == "connection_init" and message.get("payload") is None:
            message = {"type": "connection_init"}
        if complaint := _complaint(message):
            await self.handle_invalid_message(complaint)
        else:
            await super().handle_message(message)

    async def handle_connection_init(self, message: ConnectionInitMessage) -> None:
        """Let the viewer in, for as long as the token is good."""
        await super().handle_connection_init(message)
        if self.connection_acknowledged and self.context.viewer and not self._expiry:
            self._expiry = asyncio.create_task(self._expire(self.context.viewer.expires_at))

    async def shutdown(self) -> None:
        """End what still runs for this socket."""
        if self._expiry:
            self._expiry.cancel()
        await super().shutdown()

    async def _expire(self, at: datetime) -> None:
        await asyncio.sleep(max(0.0, (at - datetime.now(UTC)).total_seconds()))
        await self._forbid("The access token has expired.")

    async def _forbid(self, reason: str) -> None:
        """End all operations and the socket."""
        current = asyncio.current_task()
        for operation_id, operation in list(self.operations.items()):
            if operation.task is current:
                self.operations.pop(operation_id)
            else:
                await self.cleanup_operation(operation_id)
        with contextlib.suppress(RuntimeError):  # closed already
            await self.websocket.close(FORBIDDEN, reason)

    async def _send_result_stream(self, operation: Operation[Caller, None], result_source: Any) -> None:
        async with aclosing(self._while_logged_in(result_source)) as results:
            await super()._send_result_stream(operation, results)

    async def _while_logged_in(self, results: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
        """Pass results on until one says that the session is over; then end the socket."""
        async for result in results:
            if any(isinstance(error.original_error, SessionOver) for error in result.errors or ()):
                await self._forbid("The session has ended.")
                raise _OperationStreamClosed
            yield result

    @staticmethod
    def _get_pre_execution_close_reason(error: GraphQLError) -> str | None:
        """Never close the socket for a bad document: the others on it are not to blame."""
        return None


def _complaint(message: Any) -> str | None:
    """Say what makes a message unusable, if anything."""
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        return "A message must be an object with a type"
    if message["type"] not in ("subscribe", "complete"):
        return None
    if not isinstance(message.get("id"), str) or not 0 < len(message["id"]) <= 100:
        return "An operation needs an id, a string of 1 to 100 characters"
    if message["type"] == "complete":
        return None
    payload = message.get("payload")
    if not isinstance(payload, dict) or not isinstance(payload.get("query"), str) or not payload["query"]:
        return "An operation needs a payload with a query"
    if not isinstance(payload.get("variables"), dict | None):
        return "The variables of an operation must be an object"
    if not isinstance(payload.get("operationName"), str | None):
        return "The operationName of an operation must be a string"
    return None
