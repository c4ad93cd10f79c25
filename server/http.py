"""GraphQL over HTTP: https://graphql.github.io/graphql-over-http/draft/, with sockets and event streams beside it.

Strawberry's view does the work; this one is stricter about what it reads and exact about how it answers.
"""

import contextlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import orjson
from cross_web import AsyncHTTPRequestAdapter, HTTPException, StarletteRequestAdapter
from graphql import GraphQLSyntaxError, get_operation_ast, parse
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket
from strawberry.asgi import GraphQL
from strawberry.exceptions import MissingQueryError
from strawberry.http import GraphQLHTTPResponse, GraphQLRequestData
from strawberry.http.base import BaseRequestProtocol
from strawberry.schema.exceptions import CannotGetOperationTypeError, InvalidOperationTypeError
from strawberry.subscriptions import GRAPHQL_TRANSPORT_WS_PROTOCOL
from strawberry.types import ExecutionResult
from strawberry.types.graphql import OperationType

from graph.errors import StoreUnavailable
from server.auth import BadToken, Tokens
from server.errors import STATUSES, UNAUTHENTICATED, Refused, coded
from server.execution import Execution
from server.limits import MAX_TOKENS
from server.operation import Caller, Resumption
from server.playground import Playground
from server.quotas import Quota
from server.sockets import SocketAdapter, SocketHandler
from server.streams import EVENT_STREAM, EventStream, shaped

JSON = "application/json"
GRAPHQL_JSON = "application/graphql-response+json"
INIT_SECONDS = 5
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
        allowed_origins: tuple[str, ...],
        max_streams: int,
    ) -> None:
        super().__init__(
            execution.schema,
            graphql_ide=None,
            subscription_protocols=(GRAPHQL_TRANSPORT_WS_PROTOCOL,),
            connection_init_wait_timeout=timedelta(seconds=INIT_SECONDS),
            max_subscriptions_per_connection=MAX_OPERATIONS,
            allowed_origins=allowed_origins,
        )
        self.execution = execution
        self._tokens = tokens
        self._playground = playground
        self.sockets = Quota(max_streams)
        self.streams = Quota(max_streams)

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
            raise Refused(405, "GraphQL is served to GET and POST.", headers={"Allow": "GET, POST"})
        wants_page = request.method == "GET" and "text/html" in request.headers.get("accept", "")
        if self._playground and wants_page and "query" not in request.query_params:
            return self._playground.page()
        if _parse_media_type(request.headers.get("accept", "").split(",")[0])[0] == EVENT_STREAM:
            return await self._stream(request)
        return await self.run(request)

    async def _stream(self, request: Request) -> EventStream:
        """Stream any operation, but mutations only if posted, to who asks for that first.

        Clients that list the media type of event streams after others want JSON. Raises Refused for a bad token or a
        session that has ended. One round trip, shared with other reads of its tick.
        """
        caller = self._identify(request)
        caller.resumption = Resumption(request.headers.get("last-event-id") or None)
        adapter = StarletteRequestAdapter(request)
        data = await self.parse_http_body(adapter)
        if data.query is None:
            raise Refused(400, "The request has no 'query'.")
        if adapter.method == "GET" and _mutates(data.query, data.operation_name):
            raise Refused(405, "Mutations must be posted.", headers={"Allow": "POST"})
        try:
            with contextlib.suppress(StoreUnavailable):  # the operation checks again and can say so
                await caller.check_session()
        except BadToken as bad:
            raise _unauthenticated(bad) from None
        allowed = OperationType.from_http(adapter.method)
        results = self.execution.stream(caller, data.query, data.variables, data.operation_name, allowed)
        return EventStream(results, caller)

    def should_render_graphql_ide(self, request: BaseRequestProtocol) -> bool:
        """Say no: the playground was asked for before, and whoever accepts anything gets JSON."""
        return False

    async def get_context(self, request: Request | WebSocket, response: Response | WebSocket) -> Caller:
        """Tell who asks. A socket may say so later, in its first message."""
        if isinstance(request, Request):
            return self._identify(request)
        caller = self._caller(request)
        request.scope["headers"].clear()  # they have been read, and the socket may last for days
        return caller

    def _identify(self, request: Request) -> Caller:
        """Tell who sent a request. Raises Refused for a bad token."""
        caller = self._caller(request)
        try:
            caller.viewer = self._tokens.viewer(caller.authorization)
        except BadToken as bad:
            raise _unauthenticated(bad) from None
        return caller

    def _caller(self, connection: Request | WebSocket) -> Caller:
        return Caller(
            connection.app.state.graph,
            self._tokens,
            self.sockets,
            self.streams,
            connection.state.request_id,
            connection.client.host if connection.client else "",
            authorization=connection.headers.get("authorization"),
        )

    async def parse_http_body(self, request: AsyncHTTPRequestAdapter) -> GraphQLRequestData:
        """Read what to execute. Raises Refused, naming what is wrong."""
        data = _of_query(request.query_params) if request.method == "GET" else await _of_body(request)
        if not isinstance(data, dict):
            raise Refused(400, "The request must be one JSON object; batches are not served.")
        kinds = {"query": str, "operationName": str, "variables": dict, "extensions": dict}
        for name, kind in kinds.items():
            if not isinstance(data.get(name), kind | None):
                article = "a string" if kind is str else "an object"
                raise Refused(400, f"'{name}' must be {article}.")
        if data.get("query") == "":
            raise Refused(400, "The request has no 'query'.")
        return GraphQLRequestData(
            query=data.get("query"),
            variables=data.get("variables"),
            operation_name=data.get("operationName"),
            extensions=data.get("extensions"),
        )

    async def execute_single(
        self,
        request: Request,
        request_adapter: AsyncHTTPRequestAdapter,
        sub_response: Response,
        context: Caller,
        root_value: None,
        request_data: GraphQLRequestData,
    ) -> ExecutionResult:
        """Execute a query, or a mutation that was posted."""
        posted = request_adapter.method == "POST"
        allowed = {OperationType.QUERY, OperationType.MUTATION} if posted else {OperationType.QUERY}
        try:
            return await self.schema.execute(
                request_data.query,
                variable_values=request_data.variables,
                context_value=context,
                operation_name=request_data.operation_name,
                allowed_operation_types=allowed,
                operation_extensions=request_data.extensions,
            )
        except MissingQueryError:
            raise Refused(400, "The request has no 'query'.") from None
        except CannotGetOperationTypeError as error:
            raise Refused(400, error.as_http_error_reason()) from None
        except InvalidOperationTypeError as error:
            if error.operation_type is OperationType.MUTATION:
                raise Refused(405, "Mutations must be posted.", headers={"Allow": "POST"}) from None
            transports = f"over WebSocket ({GRAPHQL_TRANSPORT_WS_PROTOCOL}) or as {EVENT_STREAM}"
            raise Refused(400, f"Subscriptions are served {transports}.") from None

    async def process_result(self, request: Request, result: ExecutionResult) -> GraphQLHTTPResponse:
        """Shape a result, with coded errors."""
        if result.errors:
            result.errors = coded(result.errors, request.state.request_id)
        return shaped(result)

    async def get_sub_response(self, request: Request | WebSocket) -> Response:
        """Choose the response's media type from what the client accepts."""
        response = await super().get_sub_response(request)
        response.media_type = _choose_media_type(request.headers.get("accept", ""))
        return response

    def create_response(
        self, response_data: GraphQLHTTPResponse | list[GraphQLHTTPResponse], sub_response: Response
    ) -> Response:
        """Choose the status, and write the response."""
        status = 200
        if isinstance(response_data, dict) and "data" not in response_data:
            first: Any = (response_data.get("errors") or [{}])[0]
            refused = 400 if sub_response.media_type == GRAPHQL_JSON else 200
            status = STATUSES.get(first["extensions"]["code"], refused)
        return Response(self.encode_json(response_data), status, media_type=sub_response.media_type)

    def decode_json(self, data: str | bytes) -> object:
        """Read JSON strictly: no invalid UTF-8, no lone surrogates, no NaN, no endless nesting or numbers."""
        return orjson.loads(data)

    def encode_json(self, data: object) -> str:
        """Write JSON."""
        return orjson.dumps(data).decode()


def _unauthenticated(bad: BadToken) -> Refused:
    challenge = {"WWW-Authenticate": 'Bearer error="invalid_token"'}
    return Refused(401, str(bad), UNAUTHENTICATED, challenge)


def _mutates(query: str, operation_name: str | None) -> bool:
    """Tell whether a document asks for a mutation; what else is wrong with it, its execution says."""
    try:
        document = parse(query, no_location=True, max_tokens=MAX_TOKENS)
    except GraphQLSyntaxError:
        return False
    operation = get_operation_ast(document, operation_name)
    return operation is not None and operation.operation.value == OperationType.MUTATION.value


def _of_query(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Read a GET request, whose variables and extensions are JSON."""
    given = {name: value for name, value in parameters.items() if value}
    for name in ("variables", "extensions"):
        if name in given:
            try:
                given[name] = orjson.loads(given[name])
            except orjson.JSONDecodeError as error:
                raise Refused(400, f"'{name}' is not JSON: {error}.") from None
    return given


async def _of_body(request: AsyncHTTPRequestAdapter) -> Any:
    content_type, parameters = _parse_media_type(request.content_type or "")
    if content_type != JSON or parameters.get("charset", "utf-8") not in ("utf-8", "utf8"):
        raise Refused(415, f"The body must be {JSON}, in UTF-8.")
    try:
        return orjson.loads(await request.get_body())
    except orjson.JSONDecodeError as error:
        raise Refused(400, f"The body is not JSON: {error}.") from None


def _choose_media_type(accept: str) -> str:
    """Give the media type that the client likes best: JSON, unless it names the other and likes it as much."""
    liking = {JSON: 0.0, GRAPHQL_JSON: 0.0}
    for part in accept.split(","):
        name, parameters = _parse_media_type(part)
        try:
            quality = float(parameters.get("q", 1))
        except ValueError:
            quality = 0.0
        if name in ("*/*", "application/*"):
            name = JSON
        if name in liking:
            liking[name] = max(liking[name], quality)
    return GRAPHQL_JSON if liking[GRAPHQL_JSON] >= max(liking[JSON], 0.001) else JSON


def _parse_media_type(text: str) -> tuple[str, dict[str, str]]:
    """Split a media type from its parameters, in lower case."""
    name, *parameters = (part.strip() for part in text.lower().split(";"))
    pairs = (parameter.partition("=") for parameter in parameters)
    return name, {key.strip(): value.strip(' "') for key, _, value in pairs}
