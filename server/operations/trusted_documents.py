"""Trusted documents: documents that the operator lists and clients request by id instead of sending the text.

Requests use `documentId` ("persisted documents" of GraphQL over HTTP, appendix A) or Apollo's extension
`persistedQuery`. All trusted documents are loaded, validated and prepared at startup; requests cannot add any.

Trusted documents are read from manifests and document files. A manifest is a JSON object that maps ids to texts
(relay-compiler's `persistConfig.file`, the `persisted-documents.json` of GraphQL Code Generator), or an object with the
format `apollo-persisted-query-manifest` (Apollo). A `.graphql` or `.gql` file is one document, whose id is the file
name without the extension.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from server.errors import Refused
from server.operations.operation_request import MAX_ID, OperationRequest
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

# Manifests.
APOLLO = "apollo-persisted-query-manifest"
MAX_DOCUMENTS = 1_000
MAX_BYTES = 2 * 1024 * 1024  # of all files together
SHOWN = 80  # characters of an id in an error

Pairs: TypeAlias = list[tuple[str, Any]]


@dataclass(frozen=True, slots=True)
class Entry:
    """A trusted document: its id, its text and its file."""

    id: str
    text: str
    file: Path

    @property
    def place(self) -> str:
        """The file and the id of the document, as text for error messages."""
        return f"{self.file}, document {_shown(self.id)}"


class TrustedDocuments:
    """The ids and texts of the trusted documents, which do not change while the server runs."""

    def __init__(self, mode: TrustedDocumentsMode, texts: Mapping[str, str] | None = None) -> None:
        self._mode = mode
        self._texts = dict(texts or {})

    @classmethod
    def load(
        cls, path: Path | None, mode: TrustedDocumentsMode, pin: Callable[[str], Sequence[str]]
    ) -> "TrustedDocuments":
        """Load and prepare the trusted documents in a file or folder. Load none without a path or in the mode `off`.

        `pin` prepares a text for the life of the process and returns its errors as sentences. Raises SettingsError,
        whose message names the file and the invalid document.
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
        """Return the text of the document that a request identifies or contains. Raises Refused. O(1)."""
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
        """Return the text of the document with this `documentId`. Raises Refused if there is none."""
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
        """Return the text of the document with the hash from Apollo's extension. Raises Refused if there is none.

        Apollo's clients expect one of two messages with status 200. After `PersistedQueryNotFound` they retry with the
        text; after `PersistedQueryNotSupported` they always send texts. In the mode `only`, the server accepts no
        texts, so it sends neither message.
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
    """Map ids to texts. Each text has two ids: the declared one, and `sha256:` followed by the hash of the text.

    Raises SettingsError if an id with this prefix does not contain the hash of its text, or if two texts share an id.
    """
    known: dict[str, Entry] = {}
    for entry in entries:
        hashed = HASHED + _hash(entry.text)
        if entry.id.startswith(HASHED) and entry.id != hashed:
            raise SettingsError(f"{entry.place}: the id is not the SHA-256 hash of the text, which is {hashed}.")
        for id in {entry.id, hashed}:
            first = known.setdefault(id, entry)
            if first.text != entry.text:
                raise SettingsError(f"{entry.place}: {first.file} contains the same id with a different text.")
    return {id: entry.text for id, entry in known.items()}


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


class _Object(dict[str, Any]):
    """A JSON object that also keeps its pairs, because a key may occur twice."""

    def __init__(self, pairs: Pairs) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def read_entries(path: Path) -> list[Entry]:
    """Return the documents of a manifest, of a document file, or of all such files directly in a folder.

    Files in a folder are read in the order of their names; hidden files and files with other extensions are ignored.
    Raises SettingsError, whose message names the file and the invalid document.
    """
    entries: list[Entry] = []
    left = MAX_BYTES
    for file in _files(path):
        content = _read(file, left)
        left -= len(content)
        entries += _entries(file, content)
        if len(entries) > MAX_DOCUMENTS:
            raise SettingsError(f"{path}: there are more than {MAX_DOCUMENTS:,} trusted documents. Remove unused ones.")
    if not entries:
        raise SettingsError(f"{path}: there are no trusted documents. Add a manifest or .graphql files.")
    return entries


def _files(path: Path) -> list[Path]:
    try:
        if path.is_dir():
            return sorted(file for file in path.iterdir() if _reads(file) and not file.name.startswith("."))
        if not path.exists():
            raise SettingsError(f"{path}: there is no such file or folder (FANLINE_TRUSTED_DOCUMENTS).")
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror or error}.") from None
    if not _reads(path):
        raise SettingsError(f"{path}: must be a folder, or a file that ends in .json, .graphql or .gql.")
    return [path]


def _reads(path: Path) -> bool:
    return path.suffix in (".json", ".graphql", ".gql")


def _read(file: Path, limit: int) -> bytes:
    try:
        if not file.is_file():
            raise SettingsError(f"{file}: is not a regular file.")
        with file.open("rb") as opened:
            content = opened.read(limit + 1)
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror or error}.") from None
    if len(content) > limit:
        size = MAX_BYTES // 1024 // 1024
        message = f"the trusted documents together exceed the limit of {size} MB. Remove unused ones."
        raise SettingsError(f"{file}: {message}")
    return content


def _entries(file: Path, content: bytes) -> Iterator[Entry]:
    """Yield the documents of one file. Raises SettingsError."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file} is not UTF-8: {error.reason} at byte {error.start}.") from None
    for number, (id, document) in enumerate(_pairs(file, text) if file.suffix == ".json" else [(file.stem, text)], 1):
        if not isinstance(id, str) or not 0 < len(id) <= MAX_ID:
            raise SettingsError(f"{file}, document {number}: the id must be a string of 1 to {MAX_ID} characters.")
        entry = Entry(id, document, file)
        if not isinstance(document, str) or not document.strip():
            raise SettingsError(f"{entry.place}: must be the text of a GraphQL document.")
        if not _is_unicode(id + document):
            raise SettingsError(f"{entry.place}: contains a lone surrogate, which no request can contain.")
        yield entry


def _pairs(file: Path, text: str) -> Pairs:
    """Return the ids and texts of a manifest, without checking their types. Raises SettingsError."""
    try:
        manifest = json.loads(text, object_pairs_hook=_Object)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{file}: invalid JSON: {error}.") from None
    if not isinstance(manifest, _Object):
        raise SettingsError(f"{file}: must be a JSON object of ids and texts, or an {APOLLO}.")
    if manifest.get("format") != APOLLO and not isinstance(manifest.get("operations"), list):
        return manifest.pairs
    return list(_apollo_pairs(file, manifest))


def _apollo_pairs(file: Path, manifest: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    if manifest.get("format") != APOLLO or manifest.get("version") != 1:
        raise SettingsError(f"{file}: a manifest with 'operations' must have the format '{APOLLO}', version 1.")
    operations = manifest.get("operations")
    if not isinstance(operations, list):
        raise SettingsError(f"{file}: 'operations' must be a list.")
    for number, operation in enumerate(operations, 1):
        if not isinstance(operation, dict):
            raise SettingsError(f"{file}, document {number}: must be an object with an 'id' and a 'body'.")
        yield operation.get("id"), operation.get("body")  # type: ignore[misc] # the types are checked by the caller


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(id: str) -> str:
    return repr(id if len(id) <= SHOWN else f"{id[:SHOWN]}…")
