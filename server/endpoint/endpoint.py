"""The endpoint: GraphQL over HTTP, with sockets and event streams beside it. Strawberry's view does the sockets."""

import contextlib
from datetime import timedelta

import orjson
from cross_web import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket
from strawberry.asgi import GraphQL
from strawberry.schema.exceptions import CannotGetOperationTypeError, InvalidOperationTypeError
from strawberry.subscriptions import GRAPHQL_TRANSPORT_WS_PROTOCOL
from strawberry.types import ExecutionResult
from strawberry.types.graphql import OperationType

from graph.errors import StoreUnavailable
from server.auth import BadToken, Tokens
from server.endpoint.event_stream import EVENT_STREAM, EventStream
from server.endpoint.requests import (
    CHALLENGE,
    Asked,
    choose_media_type,
    parse_media_type,
    read_body,
    read_parameters,
    render,
)
from server.endpoint.websocket import SocketAdapter, SocketHandler
from server.errors import UNAUTHENTICATED, Refused, shortened
from server.operations.caller import Caller, Resumption
from server.operations.execution import Execution
from server.operations.quotas import Quota
from server.operations.rates import RateLimits
from server.operations.trusted_documents import TrustedDocuments
from server.playground import Playground
from server.settings import Settings

POSTED = frozenset({OperationType.QUERY, OperationType.MUTATION})
GOTTEN = frozenset({OperationType.QUERY})
STREAMED = frozenset({OperationType.SUBSCRIPTION})
ASKING = {"query", "documentId", "extensions"}  # parameters, of which one names a document
INIT_SECONDS = 5
ANONYMOUS_SHARE = 100  # an anonymous address may hold a hundredth of the filter terms of a viewer
MAX_DIGITS = 18  # of a declared length
MAX_OPERATIONS = 100  # at once on one socket


class GraphQLEndpoint(GraphQL[Caller, None]):
    """The endpoint for POST, GET and WebSocket; a browser that navigates to it gets the playground, if open."""

    graphql_transport_ws_handler_class = SocketHandler
    websocket_adapter_class = SocketAdapter

    def __init__(
        self,
        execution: Execution,
        tokens: Tokens,
        playground: Playground | None,
        trusted: TrustedDocuments,
        settings: Settings,
    ) -> None:
        super().__init__(
            execution.schema,
            graphql_ide=None,
            subscription_protocols=(GRAPHQL_TRANSPORT_WS_PROTOCOL,),
            connection_init_wait_timeout=timedelta(seconds=INIT_SECONDS),
            max_subscriptions_per_connection=MAX_OPERATIONS,
            allowed_origins=settings.allowed_origins,
        )
        self.execution = execution
        self.trusted = trusted
        self._tokens = tokens
        self._playground = playground
        self.rate_limits = RateLimits.of(settings)
        self.max_body = settings.max_body
        self.sockets = Quota(settings.max_streams)
        self.streams = Quota(settings.max_streams)
        self.terms = Quota(settings.max_filter_terms)
        self.anonymous_terms = Quota(max(1, settings.max_filter_terms // ANONYMOUS_SHARE))
        self._anonymous_streams = self.streams
        if self.rate_limits:
            self._anonymous_streams = Quota(min(settings.max_streams, settings.max_anonymous_streams))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hold one socket."""
        if scope["type"] != "http":
            return await super().__call__(scope, receive, send)
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except Refused as refused:
            response = refused.response(request.state.request_id)
        except HTTPException as error:
            response = Refused(error.status_code, error.reason).response(request.state.request_id)
        except ClientDisconnect:
            return None
        return await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response | EventStream:
        if request.method not in ("GET", "POST"):
            raise Refused(405, "The method must be GET or POST.", headers={"Allow": "GET, POST"})
        wants_page = request.method == "GET" and "text/html" in request.headers.get("accept", "")
        if self._playground and wants_page and not ASKING & request.query_params.keys():
            return self._playground.page()
        if parse_media_type(request.headers.get("accept", "").split(",")[0])[0] == EVENT_STREAM:
            return await self._stream(request)
        caller = self.identify(request.scope, request.headers.get("authorization"))
        caller.receive = request.receive
        result = await self.execute(caller, await self._read(request), posted=request.method == "POST")
        media_type = choose_media_type(request.headers.get("accept", ""))
        answer = render(result, media_type, self.execution.limits.response, caller.meter)
        response = Response(answer.body, answer.status, media_type=media_type)
        response.raw_headers += answer.headers
        return response

    async def _stream(self, request: Request) -> EventStream:
        """Stream any operation, but mutations only if posted, to who asks for that first.

        Clients that list the media type of event streams after others want JSON. Raises Refused for a bad token or a
        session that has ended. One round trip, shared with other reads of its tick.
        """
        caller = self.identify(request.scope, request.headers.get("authorization"))
        caller.resumption = Resumption(request.headers.get("last-event-id") or None)
        asked = await self._read(request)
        query = self.trusted.resolve(asked)
        try:
            with contextlib.suppress(StoreUnavailable):  # the operation checks again and can say so
                await caller.check_session()
        except BadToken as bad:
            raise _unauthenticated(bad) from None
        allowed = POSTED | STREAMED if request.method == "POST" else GOTTEN | STREAMED
        try:
            results = self.execution.stream(caller, query, asked.variables, asked.operation_name, allowed)
        except (CannotGetOperationTypeError, InvalidOperationTypeError) as error:
            raise _kind_refused(error) from None
        return EventStream(results, caller)

    async def _read(self, request: Request) -> Asked:
        """Read what a request asks for. Raises Refused for a body that is too large, before all of it has come."""
        if request.method == "GET":
            return read_parameters(request.query_params)
        declared = request.headers.get("content-length", "0")
        if declared.isdigit() and (len(declared) > MAX_DIGITS or int(declared) > self.max_body):
            raise self._too_large()
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > self.max_body:
                raise self._too_large()
        return read_body(request.headers.get("content-type", ""), bytes(body))

    def _too_large(self) -> Refused:
        message = f"The body has more than {self.max_body:,} bytes, the most that are read. Send less."
        return Refused(413, message)

    async def get_context(self, request: Request | WebSocket, response: Response | WebSocket) -> Caller:
        """Tell who opened a socket, who may say more in the first message."""
        caller = self._caller(request.scope, request.headers.get("authorization"))
        request.scope["headers"].clear()  # they have been read, and the socket may last for days
        return caller

    def identify(self, scope: Scope, authorization: str | None) -> Caller:
        """Tell who sent a request. Raises Refused for a bad token."""
        caller = self._caller(scope, authorization)
        try:
            caller.viewer = self._tokens.viewer(authorization)
        except BadToken as bad:
            raise _unauthenticated(bad) from None
        return caller

    def _caller(self, scope: Scope, authorization: str | None) -> Caller:
        client = scope.get("client")
        return Caller(
            scope["app"].state.graph,
            self._tokens,
            self.sockets,
            self.streams,
            self._anonymous_streams,
            self.terms,
            self.anonymous_terms,
            scope["state"]["request_id"],
            client[0] if client else "",
            authorization=authorization,
            rate_limits=self.rate_limits,
        )

    def decode_json(self, data: str | bytes) -> object:
        """Read a socket's message as strictly as a request's body."""
        return orjson.loads(data)

    def encode_json(self, data: object) -> str:
        """Write a socket's message."""
        return orjson.dumps(data).decode()

    async def execute(self, caller: Caller, asked: Asked, *, posted: bool) -> ExecutionResult:
        """Execute a query, or a mutation that was posted. Raises Refused for what is not served like this."""
        allowed = POSTED if posted else GOTTEN
        query = self.trusted.resolve(asked)
        try:
            return await self.execution.execute(caller, query, asked.variables, asked.operation_name, allowed)
        except (CannotGetOperationTypeError, InvalidOperationTypeError) as error:
            raise _kind_refused(error) from None


def _kind_refused(error: CannotGetOperationTypeError | InvalidOperationTypeError) -> Refused:
    """Return the refusal of an operation that is not in the document, or whose kind is not served like this."""
    if isinstance(error, CannotGetOperationTypeError):
        return Refused(400, shortened(error.as_http_error_reason()))
    if error.operation_type is OperationType.MUTATION:
        return Refused(405, "Mutations must be posted.", headers={"Allow": "POST"})
    transports = f"over WebSocket ({GRAPHQL_TRANSPORT_WS_PROTOCOL}) or as {EVENT_STREAM}"
    return Refused(400, f"Subscriptions are served {transports}.")


def _unauthenticated(bad: BadToken) -> Refused:
    return Refused(401, str(bad), UNAUTHENTICATED, {"WWW-Authenticate": CHALLENGE})
