"""Requests and responses of GraphQL over HTTP: https://graphql.github.io/graphql-over-http/draft/, read strictly."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson
from strawberry.types import ExecutionResult

from server.errors import COST_LIMIT, STATUSES, Refused
from server.operations.execution import was_executed
from server.operations.rates import Meter

JSON = "application/json"
GRAPHQL_JSON = "application/graphql-response+json"
REMEMBERED_LENGTH = 200  # characters of a header
CHALLENGE = 'Bearer error="invalid_token"'
KINDS: dict[str, type] = {"query": str, "operationName": str, "variables": dict, "extensions": dict}
MAX_ID = 256  # characters of a document's id


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


def choose_media_type(accept: str) -> str:
    """Give the media type that the client likes best: JSON, unless it names the other and likes it as much."""
    return _choose(accept) if len(accept) <= REMEMBERED_LENGTH else _choose.__wrapped__(accept)


@lru_cache(maxsize=256)
def _choose(accept: str) -> str:
    liking = {JSON: 0.0, GRAPHQL_JSON: 0.0}
    for part in accept.split(","):
        name, parameters = parse_media_type(part)
        try:
            quality = float(parameters.get("q", 1))
        except ValueError:
            quality = 0.0
        if name in ("*/*", "application/*"):
            name = JSON
        if name in liking:
            liking[name] = max(liking[name], quality)
    return GRAPHQL_JSON if liking[GRAPHQL_JSON] >= max(liking[JSON], 0.001) else JSON


def parse_media_type(text: str) -> tuple[str, dict[str, str]]:
    """Split a media type from its parameters, in lower case."""
    name, *parameters = (part.strip() for part in text.lower().split(";"))
    pairs = (parameter.partition("=") for parameter in parameters)
    return name, {key.strip(): value.strip(' "') for key, _, value in pairs}


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: its status, its body, and the headers beside those that every response has."""

    status: int
    body: bytes
    headers: list[tuple[bytes, bytes]]


def render(result: ExecutionResult, media_type: str, max_size: int, meter: Meter | None = None) -> Answer:
    """Return the response for a result whose errors are coded.

    What keeps an operation from being executed has a status of its own, in the newer media type at least. Raises
    Refused for a result of more than `max_size` bytes, which only introspection can have: the cost bounds all others.
    """
    headers = meter.headers() if meter else []
    if result.errors is None:
        return Answer(200, _bounded({"data": result.data}, max_size), headers)
    response: dict[str, Any] = {"errors": [error.formatted for error in result.errors]}
    if was_executed(result):
        response["data"] = result.data
        return Answer(200, _bounded(response, max_size), headers)
    extensions = response["errors"][0]["extensions"]
    refused = 400 if media_type == GRAPHQL_JSON else 200
    status = STATUSES.get(extensions["code"], refused)
    if status == 401:
        headers.append((b"www-authenticate", CHALLENGE.encode()))
    if "retryAfter" in extensions:
        headers.append((b"retry-after", str(extensions["retryAfter"]).encode()))
    return Answer(status, orjson.dumps(response), headers)


def _bounded(response: dict[str, Any], max_size: int) -> bytes:
    body = orjson.dumps(response)
    if len(body) > max_size:
        message = f"The response has {len(body):,} bytes; the limit is {max_size:,}. Request less at once."
        raise Refused(400, message, COST_LIMIT)
    return body
