"""The request parameters of GraphQL over HTTP, also used by WebSockets: a document or its id, and variables."""

from typing import Any, NamedTuple

from server.errors import Refused

MAX_ID = 256  # characters of a document's id
TYPES: dict[str, tuple[type, str]] = {
    "query": (str, "a string"),
    "operationName": (str, "a string"),
    "variables": (dict, "an object"),
    "extensions": (dict, "an object"),
}
NO_DOCUMENT = "The request has neither a 'query' nor a 'documentId'. Send one of them."


class OperationRequest(NamedTuple):
    """The operation that a request contains: the text of a document, or the id of a trusted document.

    `query` is the text, or an empty string if the request has none. `sha256` is the hash in Apollo's extension
    `persistedQuery`. If the request has a text, it must be the hash of the text; otherwise it is the id of a trusted
    document. `explain` is True if the extension `explain` is true. Other extensions are ignored.
    """

    query: str
    variables: dict[str, Any] | None
    operation_name: str | None
    document_id: str | None = None
    sha256: str | None = None
    explain: bool = False


def parse_request(data: object) -> OperationRequest:
    """Return the request parameters in a JSON value. Raises Refused for the first problem."""
    if not isinstance(data, dict):
        raise Refused(400, "The request must be one JSON object; batches are not supported.")
    for name, (type_, article) in TYPES.items():
        value = data.get(name)
        if value is not None and not isinstance(value, type_):
            raise Refused(400, f"'{name}' must be {article}.")
    query, document_id, extensions = data.get("query"), data.get("documentId"), data.get("extensions")
    operation_name = data.get("operationName") or None
    if document_id is None and not extensions:
        if not query:
            raise Refused(400, NO_DOCUMENT)
        return OperationRequest(query, data.get("variables"), operation_name)
    sha256 = _hash(extensions) if extensions else None
    _check_document(query, document_id, sha256)
    explains = extensions is not None and extensions.get("explain") is True
    return OperationRequest(query or "", data.get("variables"), operation_name, document_id, sha256, explains)


def _check_document(query: str | None, document_id: object, sha256: str | None) -> None:
    """Raise Refused unless a request identifies exactly one document, and its `documentId`, if any, is valid."""
    if document_id is None:
        if not query and sha256 is None:
            raise Refused(400, NO_DOCUMENT)
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
    """Return the hash in Apollo's extension `persistedQuery`, or None without it. Raises Refused if it is invalid."""
    persisted = extensions.get("persistedQuery")
    if persisted is None:
        return None
    if not isinstance(persisted, dict) or persisted.get("version") != 1:
        raise Refused(400, "'extensions.persistedQuery' must be an object whose 'version' is 1.")
    sha256 = persisted.get("sha256Hash")
    if not isinstance(sha256, str) or not 0 < len(sha256) <= MAX_ID:
        raise Refused(400, f"'extensions.persistedQuery.sha256Hash' must be a string of 1 to {MAX_ID} characters.")
    return sha256
