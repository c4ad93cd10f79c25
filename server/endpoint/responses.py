"""GraphQL-over-HTTP responses: media types, status codes and headers."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from strawberry.types import ExecutionResult

from server.endpoint.requests import JSON, MAX_CACHED_HEADER, parse_media_type
from server.endpoint.session_cookies import HEADER
from server.errors import COST_LIMIT, OUTAGES, STATUSES, Refused, was_executed
from server.operations.rates import Meter

GRAPHQL_JSON = "application/graphql-response+json"
EVENT_STREAM = "text/event-stream"
CHALLENGE = 'Bearer error="invalid_token"'

NO_STORE = (b"cache-control", b"no-store")
VARY = (b"vary", b"Accept, Authorization, Cookie")

Headers: TypeAlias = Iterable[tuple[bytes, bytes]]


class HttpResponse(NamedTuple):
    """A complete response: its status, its body and its headers without `Content-Length`."""

    status: int
    body: bytes
    headers: list[tuple[bytes, bytes]]

    @classmethod
    def of(cls, response: Response) -> "HttpResponse":
        """Return a Starlette response as an HttpResponse."""
        headers = [header for header in response.raw_headers if header[0] != b"content-length"]
        return cls(response.status_code, bytes(response.body), headers)

    async def send(self, _scope: Scope, _receive: Receive, send: Send, headers: Headers) -> None:
        """Send the response. `headers` are added to the response's own headers."""
        length = (b"content-length", b"%d" % len(self.body))
        await send({"type": "http.response.start", "status": self.status, "headers": [length, *self.headers, *headers]})
        await send({"type": "http.response.body", "body": self.body})


def for_caches(headers: Mapping[bytes, bytes]) -> tuple[bytes, bytes]:
    """Return the header that tells caches whether to store the response to a GET request, and for which requests.

    If the request has a cookie or requests one, the response may contain one viewer's data or set a session cookie, and
    must not be stored.
    """
    return NO_STORE if b"cookie" in headers or HEADER in headers else VARY


def choose_media_type(accept: str) -> str:
    """Return the media type of the response: event stream, GraphQL JSON or plain JSON.

    An event stream is chosen only if it is listed first, because many clients list it after JSON without wanting it.
    GraphQL JSON is chosen if it is listed with a quality value at least as high as that of plain JSON.
    """
    return _choose(accept) if len(accept) <= MAX_CACHED_HEADER else _choose.__wrapped__(accept)


@lru_cache(maxsize=256)
def _choose(accept: str) -> str:
    if parse_media_type(accept.split(",")[0])[0] == EVENT_STREAM:
        return EVENT_STREAM
    qualities = {JSON: 0.0, GRAPHQL_JSON: 0.0}
    for part in accept.split(","):
        name, parameters = parse_media_type(part)
        try:
            quality = float(parameters.get("q", 1))
        except ValueError:
            quality = 0.0
        if name in ("*/*", "application/*"):
            name = JSON
        if name in qualities:
            qualities[name] = max(qualities[name], quality)
    return GRAPHQL_JSON if qualities[GRAPHQL_JSON] >= max(qualities[JSON], 0.001) else JSON


def refused_response(refused: Refused, request_id: bytes, accept: str) -> HttpResponse:
    """Return the response to a refused request, in GraphQL JSON if the client prefers that media type.

    A refusal with status 200 is always plain JSON: GraphQL JSON without `data` must have another status.
    """
    preferred = choose_media_type(accept)
    media_type = GRAPHQL_JSON if preferred == GRAPHQL_JSON and refused.status >= 400 else JSON
    return HttpResponse.of(refused.response(request_id.decode(), media_type))


def render(result: ExecutionResult, media_type: str, max_size: int, meter: Meter | None = None) -> HttpResponse:
    """Return the response for a result whose errors have codes.

    If the operation was not executed, the response has an error status: in plain JSON only for errors with a status of
    their own, such as 401 or 429. If an outage or overload left every field null, the status is 503, so that clients
    and proxies notice the failure. Raises Refused for a result of more than `max_size` bytes. Only the results of
    introspection can be larger: the cost limit bounds all other results.
    """
    headers = [(b"content-type", media_type.encode()), *(meter.headers() if meter else ())]
    if result.extensions:
        headers.append(NO_STORE)  # a cache would give the explanation to other clients
    if result.errors is None:
        body: dict[str, Any] = {"data": result.data}
        if result.extensions:
            body["extensions"] = result.extensions
        return HttpResponse(200, _bounded(body, max_size, media_type), headers)
    response: dict[str, Any] = {"errors": [error.formatted for error in result.errors]}
    extensions = response["errors"][0]["extensions"]
    if result.extensions:
        response["extensions"] = result.extensions
    if was_executed(result):
        response["data"] = result.data
        if extensions["code"] not in OUTAGES or any(value is not None for value in (result.data or {}).values()):
            return HttpResponse(200, _bounded(response, max_size, media_type), headers)
    status = STATUSES.get(extensions["code"], _status(media_type))
    if status == 401:
        headers.append((b"www-authenticate", CHALLENGE.encode()))
    if "retryAfter" in extensions:
        headers.append((b"retry-after", str(extensions["retryAfter"]).encode()))
    return HttpResponse(status, orjson.dumps(response), headers)


def _status(media_type: str) -> int:
    """Return the default status of a response without `data` to a well-formed request, as in the specification."""
    return 400 if media_type == GRAPHQL_JSON else 200


def _bounded(response: dict[str, Any], max_size: int, media_type: str) -> bytes:
    body = orjson.dumps(response)
    if len(body) > max_size:
        message = f"The response has {len(body):,} bytes; the limit is {max_size:,}. Request less data."
        raise Refused(_status(media_type), message, COST_LIMIT)
    return body
