"""Manifests of trusted documents, in the formats of relay-compiler, GraphQL Code Generator and Apollo.

A manifest is a JSON object of ids and texts (relay-compiler's `persistConfig.file`, the `persisted-documents.json` of
GraphQL Code Generator), or an object with the format `apollo-persisted-query-manifest`. A `.graphql` or `.gql` file is
one document, whose id is the file name without the extension.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from server.operations.operation_request import MAX_ID
from server.settings import SettingsError

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
        """The file and id of the document, for an error message."""
        return f"{self.file}, document {_shown(self.id)}"


class _Object(dict[str, Any]):
    """A JSON object that also keeps its pairs: a key may occur twice."""

    def __init__(self, pairs: Pairs) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def read_entries(path: Path) -> list[Entry]:
    """Return the documents of a manifest, of a document file, or of all such files directly in a folder.

    Files of a folder are read in the order of their names; hidden files and other extensions are ignored. Raises
    SettingsError with the file and the invalid entry.
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
        raise SettingsError(f"{file}: all trusted documents exceed {size} MB, the limit. Remove unused ones.")
    return content


def _entries(file: Path, content: bytes) -> Iterator[Entry]:
    """Return the documents of one file. Raises SettingsError."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file}: is not UTF-8: {error.reason} at byte {error.start}.") from None
    for number, (id, document) in enumerate(_pairs(file, text) if file.suffix == ".json" else [(file.stem, text)], 1):
        if not isinstance(id, str) or not 0 < len(id) <= MAX_ID:
            raise SettingsError(f"{file}, document {number}: the id must be a string of 1 to {MAX_ID} characters.")
        entry = Entry(id, document, file)
        if not isinstance(document, str) or not document.strip():
            raise SettingsError(f"{entry.place}: must be the text of a GraphQL document.")
        if not _is_unicode(id + document):
            raise SettingsError(f"{entry.place}: has a lone surrogate, which no request can have.")
        yield entry


def _pairs(file: Path, text: str) -> Pairs:
    """Return the ids and texts of a manifest, of unchecked types. Raises SettingsError."""
    try:
        manifest = json.loads(text, object_pairs_hook=_Object)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{file}: is not JSON: {error}.") from None
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
