"""Errors in responses: a message, a stable code and the request id. Unexpected errors are logged and masked.

Expected failures of mutations are not errors: they are reported in the `userErrors` of the payload.
"""

import logging
from collections.abc import Iterable, Mapping
from itertools import islice

import orjson
from graphql import GraphQLError, GraphQLSyntaxError
from starlette.responses import Response
from strawberry.schema.exceptions import InvalidOperationTypeError
from strawberry.types import ExecutionResult

from graph.errors import Overloaded
from resolvers.errors import code_of
from server.auth import BadToken
from server.outage_log import OutageLog
from server.redaction import without_values

BAD_USER_INPUT = "BAD_USER_INPUT"
UNAUTHENTICATED = "UNAUTHENTICATED"
INTERNAL = "INTERNAL"
RATE_LIMITED = "RATE_LIMITED"
COST_LIMIT = "COST_LIMIT"
OVERLOADED = "OVERLOADED"
DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
STATUSES = {
    UNAUTHENTICATED: 401,
    RATE_LIMITED: 429,
    "STORE_UNAVAILABLE": 503,
    "NOT_DURABLE": 503,
    "ARCHIVE_UNAVAILABLE": 503,
    OVERLOADED: 503,
    DEADLINE_EXCEEDED: 503,
    INTERNAL: 500,
}
OUTAGES = frozenset(code for code, status in STATUSES.items() if status == 503)
UNAVAILABLE = frozenset({"STORE_UNAVAILABLE", "NOT_DURABLE", "ARCHIVE_UNAVAILABLE"})
OUTAGE_LOG = OutageLog()
RETRY_SECONDS = 2  # after which clients are asked to repeat an operation that was refused with OVERLOADED
RETRY: dict[str, dict[str, int]] = {OVERLOADED: {"retryAfter": RETRY_SECONDS}}
MAX_ERRORS = 100  # in one response
MAX_MESSAGE = 500  # characters of a message, which may quote the client

logger = logging.getLogger("fanline.server")


class RateLimited(GraphQLError):
    """The rate limit named `rate` is exhausted; the same request may succeed after `seconds`."""

    def __init__(self, message: str, seconds: int, rate: str) -> None:
        super().__init__(message, extensions={"code": RATE_LIMITED, "retryAfter": seconds})
        self.seconds = seconds
        self.rate = rate


class Refused(Exception):
    """A request that is not executed, with the status, message, code and headers of its response."""

    def __init__(
        self, status: int, message: str, code: str = BAD_USER_INPUT, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.headers = dict(headers or {})

    def response(self, request_id: str, media_type: str = "application/json") -> Response:
        """Return the response, in the format of GraphQL errors and with this media type."""
        extensions = {**RETRY.get(self.code, {}), "code": self.code, "requestId": request_id}
        error = {"message": self.message, "extensions": extensions}
        return Response(orjson.dumps({"errors": [error]}), self.status, self.headers, media_type)


def overloaded() -> Refused:
    """Return the refusal for an operation that this process cannot execute in time, with status 503."""
    message = f"The server has more requests than it can answer. Try again in {RETRY_SECONDS} seconds."
    return Refused(503, message, OVERLOADED, {"Retry-After": str(RETRY_SECONDS)})


def internal_error(request_id: str) -> Refused:
    """Return the refusal for a request that failed unexpectedly, with status 500."""
    return Refused(500, _internal_message(request_id), INTERNAL)


def _internal_message(request_id: str) -> str:
    return f"An internal error occurred. Report it to the operator with the request id {request_id}."


def was_executed(result: ExecutionResult) -> bool:
    """Return True if execution started, even if it then failed."""
    return result.data is not None or any(error.path for error in result.errors or ())


def with_codes(errors: Iterable[GraphQLError], request_id: str) -> list[GraphQLError]:
    """Return the first 100 errors with their codes and the request id. Unexpected errors are logged and masked.

    Errors that already have both are returned unchanged.
    """
    shown = islice(errors, MAX_ERRORS)
    return [error if "requestId" in (error.extensions or {}) else _with_code(error, request_id) for error in shown]


def _with_code(error: GraphQLError, request_id: str) -> GraphQLError:
    message, code = error.message, code_for(error)
    if code == INTERNAL:
        cause = _cause(error) or error
        logger.error("Request %s failed at %s: %r", request_id, error.path, cause, exc_info=cause)
        message = _internal_message(request_id)
    elif code in UNAVAILABLE:
        OUTAGE_LOG.add(code, getattr(_cause(error), "reason", "") or message)
    elif _cause(error) is None:
        message = without_values(message)
    copy = GraphQLError(
        shortened(message),
        path=error.path,
        extensions={**_retry(error, code), **(error.extensions or {}), "code": code, "requestId": request_id},
    )
    copy.original_error = error.original_error
    copy.locations = error.locations  # copied: computing them again would scan the document for each error
    return copy


def _retry(error: GraphQLError, code: str) -> dict[str, int]:
    """Return the extension `retryAfter` in seconds, or no extension if clients should not retry the operation."""
    cause = _cause(error)
    return {"retryAfter": cause.seconds} if isinstance(cause, Overloaded) else RETRY.get(code, {})


def shortened(message: str) -> str:
    """Truncate a message, which may quote the client, to 500 characters."""
    return message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…"


def code_for(error: GraphQLError) -> str:
    """Return the code in an error's extensions or, if there is none, the code of its cause or its kind of error."""
    if given := (error.extensions or {}).get("code"):
        return str(given)
    if isinstance(error, GraphQLSyntaxError):
        return "GRAPHQL_PARSE_FAILED"
    cause = _cause(error)
    if cause is None or isinstance(cause, InvalidOperationTypeError):
        return BAD_USER_INPUT
    if isinstance(cause, BadToken):
        return UNAUTHENTICATED
    return code_of(cause) or INTERNAL


def _cause(error: GraphQLError) -> BaseException | None:
    """Return the exception inside nested GraphQL errors; None if they wrap no other exception."""
    cause: BaseException | None = error.original_error
    while isinstance(cause, GraphQLError):
        cause = cause.original_error
    return cause
