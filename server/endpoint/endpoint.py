"""The GraphQL endpoint over HTTP, for POST and GET requests."""

from collections.abc import Mapping
from functools import partial
from typing import TypeAlias

from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send
from strawberry.schema.exceptions import InvalidOperationTypeError
from strawberry.subscriptions import GRAPHQL_TRANSPORT_WS_PROTOCOL
from strawberry.types.graphql import OperationType

from server.endpoint.callers import Callers
from server.endpoint.cross_origin import CrossOrigin
from server.endpoint.event_stream import ChangedCookie, EventStream
from server.endpoint.request_ids import REQUEST_ID, set_request_id
from server.endpoint.requests import combine_headers, parse_body, parse_parameters, receive_body
from server.endpoint.responses import (
    EVENT_STREAM,
    HttpResponse,
    choose_media_type,
    for_caches,
    refused_response,
    render,
)
from server.errors import Refused, internal_error, overloaded
from server.log_context import LOGGED
from server.operations.caller import Caller
from server.operations.execution import Execution
from server.operations.operation_request import OperationRequest
from server.operations.trusted_documents import TrustedDocuments
from server.playground.page import Playground
from server.transport.admission import COMPLETE, PERMIT, PERMIT_OF_TASK, Permit

Kinds: TypeAlias = frozenset[OperationType]

ALLOWED: dict[str, Kinds] = {
    "POST": frozenset({OperationType.QUERY, OperationType.MUTATION}),
    "GET": frozenset({OperationType.QUERY}),
}
SUBSCRIPTIONS = frozenset({OperationType.SUBSCRIPTION})
EXPLAIN = b"x-fanline-explain"
OPERATION_PARAMETERS = {"query", "documentId", "extensions"}


class GraphQLEndpoint:
    """Answers POST and GET requests. Serves the playground, if enabled, to browsers that navigate to the endpoint.

    This is an ASGI application without middleware: it adds the request id header and the CORS headers itself.
    """

    def __init__(
        self,
        execution: Execution,
        callers: Callers,
        trusted: TrustedDocuments,
        cross_origin: CrossOrigin,
        playground: Playground | None,
        max_body: int,
    ) -> None:
        self.execution = execution
        self.callers = callers
        self.trusted = trusted
        self._cross_origin = cross_origin
        self._playground = playground
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        given = combine_headers(scope["headers"])
        permit: Permit | None = scope.setdefault("state", {}).get(PERMIT)
        PERMIT_OF_TASK.set(permit)
        request_id = set_request_id(scope, given.get(REQUEST_ID))
        LOGGED.set((scope["state"]["request_id"], None))
        headers = [(REQUEST_ID, request_id), *self._cross_origin.headers(given.get(b"origin"))]
        if scope["method"] == "GET":
            headers.append(for_caches(given))
        try:
            response = await self._answer(scope, receive, given)
            if isinstance(response, EventStream):
                response.permit, permit = permit, None
        except Refused as refused:
            response = refused_response(refused, request_id, accept_of(given))
        except ClientDisconnect:
            return
        except Exception:
            response = refused_response(internal_error(request_id.decode()), request_id, accept_of(given))
            await response.send(scope, receive, send, headers)
            raise  # the server logs the traceback
        finally:
            if permit is not None:
                permit.release()
        await response.send(scope, receive, send, headers)

    async def _answer(
        self, scope: Scope, receive: Receive, headers: Mapping[bytes, bytes]
    ) -> HttpResponse | EventStream:
        """Return the response to a request: the result of its operation, an event stream, or the playground.

        Raises Refused if the request is invalid or its kind of operation is not allowed. Raises ClientDisconnect.
        """
        if scope["method"] not in ALLOWED:
            raise method_not_allowed()
        accept = accept_of(headers)
        if self._playground and _wants_page(scope, accept):
            return HttpResponse.of(self._playground.page())
        caller = self.callers.identify(scope, headers)
        request = await self._read(scope, receive, headers)
        explain = request.explain or headers.get(EXPLAIN) == b"1"
        media_type = choose_media_type(accept)
        allowed = ALLOWED[scope["method"]]
        try:
            if media_type == EVENT_STREAM:
                caller.last_event_id = headers.get(b"last-event-id", b"").decode("latin-1") or None
                changed_cookie = partial(self.callers.changed_cookie, scope, caller)
                return self._stream(caller, request, allowed | SUBSCRIPTIONS, changed_cookie, explain=explain)
            caller.receive = receive
            query = self.trusted.resolve(request)
            result = await self.execution.execute(
                caller, query, request.variables, request.operation_name, allowed, explain=explain
            )
        except InvalidOperationTypeError as error:
            raise _wrong_kind(error) from None
        response = render(result, media_type, self.execution.limits.response, caller.meter)
        if caller.from_cookie or caller.keeps_cookie:
            response.headers.extend(await self.callers.changed_cookie(scope, caller, response.status))
        return response

    async def _read(self, scope: Scope, receive: Receive, headers: Mapping[bytes, bytes]) -> OperationRequest:
        """Read the operation of a request. Raises Refused if the request is invalid, or ClientDisconnect."""
        if scope["method"] == "GET":
            return parse_parameters(QueryParams(scope["query_string"]))
        permit: Permit | None = scope["state"].get(PERMIT)
        waits = permit is not None and COMPLETE not in scope["state"]
        if permit and waits:
            permit.release()  # slow clients must not use up the limit
        body = await receive_body(receive, headers.get(b"content-length", b""), self._max_body)
        if permit and waits and not permit.resume():
            raise overloaded()
        return parse_body(headers.get(b"content-type", b"").decode("latin-1"), body)

    def _stream(
        self, caller: Caller, request: OperationRequest, allowed: Kinds, changed_cookie: ChangedCookie, *, explain: bool
    ) -> EventStream:
        query = self.trusted.resolve(request)
        results = self.execution.stream(
            caller, query, request.variables, request.operation_name, allowed, explain=explain
        )
        return EventStream(results, caller, changed_cookie)


def accept_of(headers: Mapping[bytes, bytes]) -> str:
    """Return the `Accept` header of a request, or an empty string if it has none."""
    return headers.get(b"accept", b"").decode("latin-1")


def method_not_allowed() -> Refused:
    """Return the refusal for methods other than GET and POST."""
    return Refused(405, "The method must be GET or POST.", headers={"Allow": "GET, POST"})


def _wants_page(scope: Scope, accept: str) -> bool:
    """Return True if a browser navigates to the endpoint instead of requesting an operation."""
    if scope["method"] != "GET" or "text/html" not in accept:
        return False
    return not OPERATION_PARAMETERS & QueryParams(scope["query_string"]).keys()


def _wrong_kind(error: InvalidOperationTypeError) -> Refused:
    """Return the refusal for an operation of a kind that this request may not execute."""
    if error.operation_type is OperationType.MUTATION:
        return Refused(405, "Mutations must be sent with POST.", headers={"Allow": "POST"})
    transports = f"over WebSocket ({GRAPHQL_TRANSPORT_WS_PROTOCOL}) or as {EVENT_STREAM}"
    return Refused(400, f"Subscriptions are served {transports}.")
