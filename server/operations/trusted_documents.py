"""Trusted documents: documents that the operator lists and clients request by id instead of sending the text.

Requests use `documentId` ("persisted documents" of GraphQL over HTTP, appendix A) or Apollo's extension
`persistedQuery`. All trusted documents are loaded, validated and prepared at startup; requests cannot add any.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from server.errors import Refused
from server.operations.manifests import Entry, read_entries
from server.operations.operation_request import OperationRequest
from server.setting_values import TrustedDocumentsMode
from server.settings import SettingsError

OFF, ALLOW, ONLY = TrustedDocumentsMode.OFF, TrustedDocumentsMode.ALLOW, TrustedDocumentsMode.ONLY
HASHED = "sha256:"

# Codes of Apollo's clients and gateways.
NOT_FOUND = "PERSISTED_QUERY_NOT_FOUND"
NOT_SUPPORTED = "PERSISTED_QUERY_NOT_SUPPORTED"
NOT_IN_LIST = "PERSISTED_QUERY_NOT_IN_LIST"
ID_REQUIRED = "PERSISTED_QUERY_ID_REQUIRED"
NO_STORE = {"Cache-Control": "no-store"}


class TrustedDocuments:
    """The ids and texts of the trusted documents, which do not change while the server runs."""

    def __init__(self, mode: TrustedDocumentsMode, texts: Mapping[str, str] | None = None) -> None:
        self._mode = mode
        self._texts = dict(texts or {})

    @classmethod
    def load(
        cls, path: Path | None, mode: TrustedDocumentsMode, pin: Callable[[str], Sequence[str]]
    ) -> "TrustedDocuments":
        """Load and prepare the trusted documents of a file or folder; none in the mode `off`.

        `pin` prepares a text for the life of the process and returns its errors, as sentences. Raises SettingsError
        with the file and the invalid document.
        """
        if path is None or mode is OFF:
            return cls(mode)
        entries = read_entries(path)
        texts = _by_id(entries)
        for entry in {entry.text: entry for entry in entries}.values():
            if problems := pin(entry.text):
                raise SettingsError(f"{entry.place}: {problems[0]}")
        return cls(mode, texts)

    def __len__(self) -> int:
        return len(set(self._texts.values()))

    def resolve(self, request: OperationRequest) -> str:
        """Return the text of the document that a request names. Raises Refused. O(1)."""
        if request.document_id is not None:
            return self._named(request.document_id)
        if not request.query:
            return self._hashed(request.sha256 or "")
        if self._mode is ONLY:
            raise Refused(
                400,
                "This server executes only trusted documents. Send a 'documentId', not a 'query'.",
                ID_REQUIRED,
            )
        if request.sha256 is not None and self._mode is ALLOW and request.sha256 != _hash(request.query):
            raise Refused(400, "'extensions.persistedQuery.sha256Hash' is not the SHA-256 hash of 'query'.")
        return request.query

    def _named(self, id: str) -> str:
        """Return the text of a `documentId`. Raises Refused."""
        text = self._texts.get(id)
        if text is not None:
            return text
        if self._mode is OFF:
            raise Refused(
                400, "This server has no trusted documents. Send a 'query' instead of a 'documentId'.", NOT_SUPPORTED
            )
        remedy = "Ask the operator to add it" + ("." if self._mode is ONLY else ", or send a 'query'.")
        raise Refused(400, f"This server has no trusted document with this 'documentId'. {remedy}", NOT_IN_LIST)

    def _hashed(self, given: str) -> str:
        """Return the text of a hash in Apollo's extension. Raises Refused.

        Apollo's clients expect one of two messages with status 200. After `PersistedQueryNotFound` they retry with the
        text; after `PersistedQueryNotSupported` they send texts from then on. The mode `only` accepts neither.
        """
        text = self._texts.get(given) or self._texts.get(HASHED + given)
        if text is not None:
            return text
        if self._mode is ONLY:
            message = "This server has no trusted document with this 'sha256Hash'. Ask the operator to add it."
            raise Refused(400, message, NOT_IN_LIST)
        if self._mode is OFF:
            raise Refused(200, "PersistedQueryNotSupported", NOT_SUPPORTED, NO_STORE)
        raise Refused(200, "PersistedQueryNotFound", NOT_FOUND, NO_STORE)


def _by_id(entries: Iterable[Entry]) -> dict[str, str]:
    """Return the texts by their ids, and by `sha256:` with the hash of the text. Raises SettingsError."""
    known: dict[str, Entry] = {}
    for entry in entries:
        hashed = HASHED + _hash(entry.text)
        if entry.id.startswith(HASHED) and entry.id != hashed:
            raise SettingsError(f"{entry.place}: the id is not the SHA-256 hash of the text, which is {hashed}.")
        for id in {entry.id, hashed}:
            first = known.setdefault(id, entry)
            if first.text != entry.text:
                raise SettingsError(f"{entry.place}: {first.file} contains the same id with another text.")
    return {id: entry.text for id, entry in known.items()}


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()
