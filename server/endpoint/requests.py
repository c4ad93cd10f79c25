"""GraphQL-over-HTTP requests, parsed strictly: https://graphql.github.io/graphql-over-http/draft/."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from server.errors import Refused
from server.operations.operation_request import OperationRequest, parse_request

JSON = "application/json"
MAX_CACHED_HEADER = 200  # characters of a header whose parsed form is cached
MAX_DIGITS = 18  # of a Content-Length


def combine_headers(headers: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return the headers by name. Repeated headers are combined into a list, as RFC 9110 defines (section 5.3). O(n).

    Headers that may have only one value are never repeated here: the transport refuses requests that repeat them.
    """
    given = dict(headers)
    if len(given) == len(headers):
        return given
    values: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        values.setdefault(name, []).append(value)
    return {name: b", ".join(parts) for name, parts in values.items()}


def parse_parameters(parameters: Mapping[str, Any]) -> OperationRequest:
    """Return the operation of a GET request, whose `variables` and `extensions` are JSON. Raises Refused if invalid."""
    given = {name: value for name, value in parameters.items() if value}
    for name in ("variables", "extensions"):
        if name in given:
            try:
                given[name] = orjson.loads(given[name])
            except orjson.JSONDecodeError as error:
                raise Refused(400, f"'{name}' is not valid JSON: {error}.") from None
    return parse_request(given)


async def receive_body(receive: Receive, declared: bytes, limit: int) -> bytes:
    """Return the body of a request. `declared` is its `Content-Length` header, empty if it has none.

    Raises Refused as soon as the body exceeds `limit` bytes, and ClientDisconnect if the client disconnects.
    """
    if declared.isdigit() and (len(declared) > MAX_DIGITS or int(declared) > limit):
        raise _too_large(limit)
    parts: list[bytes] = []
    left = limit
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientDisconnect
        part: bytes = message.get("body", b"")
        left -= len(part)
        if left < 0:
            raise _too_large(limit)
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(limit: int) -> Refused:
    return Refused(413, f"The body exceeds the limit of {limit:,} bytes. Send a smaller request.")


def parse_body(content_type: str, body: bytes) -> OperationRequest:
    """Return the operation of a POST request. Raises Refused.

    The JSON parser is strict: it refuses invalid UTF-8, lone surrogates, NaN, deep nesting and numbers out of range.
    """
    if not _is_json(content_type):
        raise Refused(415, f"The body must have the content type {JSON}, in UTF-8.")
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Refused(400, f"The body is not valid JSON: {error}.") from None
    return parse_request(data)


def _is_json(content_type: str) -> bool:
    """Return True if a `Content-Type` header denotes JSON in UTF-8."""
    cached = len(content_type) <= MAX_CACHED_HEADER
    return _check_type(content_type) if cached else _check_type.__wrapped__(content_type)


@lru_cache(maxsize=256)
def _check_type(content_type: str) -> bool:
    name, parameters = parse_media_type(content_type)
    return name == JSON and parameters.get("charset", "utf-8") in ("utf-8", "utf8")


def parse_media_type(text: str) -> tuple[str, dict[str, str]]:
    """Return a media type and its parameters, in lower case."""
    name, *parameters = (part.strip() for part in text.lower().split(";"))
    pairs = (parameter.partition("=") for parameter in parameters)
    return name, {key.strip(): value.strip(' "') for key, _, value in pairs}
