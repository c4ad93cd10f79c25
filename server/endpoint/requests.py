"""Requests of GraphQL over HTTP: https://graphql.github.io/graphql-over-http/draft/, read strictly."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from server.errors import Refused

JSON = "application/json"
REMEMBERED_LENGTH = 200  # characters of a header
KINDS: dict[str, type] = {"query": str, "operationName": str, "variables": dict, "extensions": dict}
MAX_ID = 256  # characters of a document's id
MAX_DIGITS = 18  # of a declared length


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks to execute: the text of a document, or the id of a trusted one.

    `query` is empty if the request has no text. `sha256` is the hash of Apollo's extension `persistedQuery`: alone it
    is an id, with a text it should be the text's hash. Other extensions are ignored.
    """

    query: str
    variables: dict[str, Any] | None
    operation_name: str | None
    document_id: str | None = None
    sha256: str | None = None


def read(data: object) -> Asked:
    """Read what to execute. Raises Refused, naming what is wrong."""
    if not isinstance(data, dict):
        raise Refused(400, "The request must be one JSON object; batches are not supported.")
    for name, kind in KINDS.items():
        value = data.get(name)
        if value is not None and not isinstance(value, kind):
            article = "a string" if kind is str else "an object"
            raise Refused(400, f"'{name}' must be {article}.")
    query, document_id, extensions = data.get("query"), data.get("documentId"), data.get("extensions")
    if document_id is None and not extensions:
        if not query:
            raise Refused(400, "The request has neither a 'query' nor a 'documentId'.")
        return Asked(query, data.get("variables"), data.get("operationName") or None)
    sha256 = _hash(extensions) if extensions else None
    _check_document(query, document_id, sha256)
    return Asked(query or "", data.get("variables"), data.get("operationName") or None, document_id, sha256)


def _check_document(query: str | None, document_id: object, sha256: str | None) -> None:
    """Raise Refused unless a request names exactly one document, by an id of a permitted length."""
    if document_id is None:
        if not query and sha256 is None:
            raise Refused(400, "The request has neither a 'query' nor a 'documentId'.")
        return
    if not isinstance(document_id, str):
        raise Refused(400, "'documentId' must be a string.")
    if not 0 < len(document_id) <= MAX_ID:
        raise Refused(400, f"'documentId' must have 1 to {MAX_ID} characters.")
    if query:
        raise Refused(400, "The request has both 'query' and 'documentId'. Send one of them.")
    if sha256 is not None:
        raise Refused(400, "The request has both 'documentId' and 'extensions.persistedQuery'. Send one of them.")


def _hash(extensions: dict[str, Any]) -> str | None:
    """Return the hash of Apollo's extension `persistedQuery`, or None without it. Raises Refused."""
    persisted = extensions.get("persistedQuery")
    if persisted is None:
        return None
    if not isinstance(persisted, dict) or persisted.get("version") != 1:
        raise Refused(400, "'extensions.persistedQuery' must be an object with the 'version' 1.")
    sha256 = persisted.get("sha256Hash")
    if not isinstance(sha256, str) or not 0 < len(sha256) <= MAX_ID:
        raise Refused(400, f"'extensions.persistedQuery.sha256Hash' must be a string of 1 to {MAX_ID} characters.")
    return sha256


def read_parameters(parameters: Mapping[str, Any]) -> Asked:
    """Read the parameters of a GET request, of which some are JSON. Raises Refused."""
    given = {name: value for name, value in parameters.items() if value}
    for name in ("variables", "extensions"):
        if name in given:
            try:
                given[name] = orjson.loads(given[name])
            except orjson.JSONDecodeError as error:
                raise Refused(400, f"'{name}' is not JSON: {error}.") from None
    return read(given)


async def receive_body(receive: Receive, declared: bytes, limit: int) -> bytes:
    """Return the body of a request. `declared` is its `Content-Length`, if it has one.

    Raises ClientDisconnect, and Refused for a body of more than `limit` bytes, as soon as that is known.
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
    return Refused(413, f"The body has more than {limit:,} bytes, the most that are read. Send less.")


def read_body(content_type: str, body: bytes) -> Asked:
    """Read the body of a POST request. Raises Refused.

    JSON is read strictly: no invalid UTF-8, no lone surrogates, no NaN, no endless nesting or numbers.
    """
    if not is_json(content_type):
        raise Refused(415, f"The body must be {JSON}, in UTF-8.")
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Refused(400, f"The body is not JSON: {error}.") from None
    return read(data)


def is_json(content_type: str) -> bool:
    """Tell whether a body of this type is JSON in UTF-8."""
    return _is_json(content_type) if len(content_type) <= REMEMBERED_LENGTH else _is_json.__wrapped__(content_type)


@lru_cache(maxsize=256)
def _is_json(content_type: str) -> bool:
    name, parameters = parse_media_type(content_type)
    return name == JSON and parameters.get("charset", "utf-8") in ("utf-8", "utf8")


def parse_media_type(text: str) -> tuple[str, dict[str, str]]:
    """Split a media type from its parameters, in lower case."""
    name, *parameters = (part.strip() for part in text.lower().split(";"))
    pairs = (parameter.partition("=") for parameter in parameters)
    return name, {key.strip(): value.strip(' "') for key, _, value in pairs}
