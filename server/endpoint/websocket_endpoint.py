"""The GraphQL endpoint over WebSocket, built on Strawberry's view: the handshake, origins and subprotocols."""

from datetime import timedelta

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket
from strawberry.asgi import GraphQL
from strawberry.subscriptions import GRAPHQL_TRANSPORT_WS_PROTOCOL

from server.endpoint.callers import Callers
from server.endpoint.origins import Origins
from server.endpoint.requests import combine_headers
from server.endpoint.websocket import SocketAdapter, SocketHandler
from server.operations.caller import Caller
from server.operations.execution import Execution
from server.operations.trusted_documents import TrustedDocuments
from server.transport.admission import Admission

INIT_SECONDS = 5
MAX_OPERATIONS = 100  # at the same time on one socket


class WebSocketEndpoint(GraphQL[Caller, None]):
    """Serves WebSockets with the protocol `graphql-transport-ws`."""

    graphql_transport_ws_handler_class = SocketHandler
    websocket_adapter_class = SocketAdapter

    def __init__(
        self,
        execution: Execution,
        callers: Callers,
        trusted: TrustedDocuments,
        origins: Origins,
        admission: Admission,
    ) -> None:
        super().__init__(
            execution.schema,
            graphql_ide=None,
            subscription_protocols=(GRAPHQL_TRANSPORT_WS_PROTOCOL,),
            connection_init_wait_timeout=timedelta(seconds=INIT_SECONDS),
            max_subscriptions_per_connection=MAX_OPERATIONS,
            allowed_origins=origins.listed,
        )
        self.execution = execution
        self.trusted = trusted
        self.admission = admission
        self._callers = callers
        self._origins = origins

    def is_websocket_origin_allowed(self, request: WebSocket, origin: str) -> bool:
        """Return True if a page of this origin may open a socket."""
        return self._origins.names(origin.encode()) or super().is_websocket_origin_allowed(request, origin)

    async def get_context(self, request: Request | WebSocket, response: Response | WebSocket) -> Caller:
        """Return the caller of a socket, whose viewer is still unknown. Clear the handshake's headers."""
        caller = self._callers.unidentified(request.scope, combine_headers(request.scope["headers"]))
        request.scope["headers"].clear()  # nothing reads them again, and the socket may last for days
        return caller

    def decode_json(self, data: str | bytes) -> object:
        """Parse a message as strictly as the body of an HTTP request."""
        return orjson.loads(data)

    def encode_json(self, data: object) -> str:
        """Encode a message as JSON."""
        return orjson.dumps(data).decode()
