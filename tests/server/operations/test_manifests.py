"""Manifests of trusted documents: errors are found at startup and name the file and the document."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from schema import schema
from server.operations.cost import OperationLimits
from server.operations.execution import Execution
from server.operations.operation_request import OperationRequest
from server.operations.parsing import DocumentLimits
from server.operations.trusted_documents import TrustedDocuments
from server.setting_values import TrustedDocumentsMode
from server.settings import Settings, SettingsError

ALLOW, ONLY = TrustedDocumentsMode.ALLOW, TrustedDocumentsMode.ONLY
VIEWER = "{ viewer { user { login } } }"
APOLLO = {"format": "apollo-persisted-query-manifest", "version": 1}


def load(path: Path) -> TrustedDocuments:
    """Load trusted documents for the real schema."""
    execution = Execution(schema, DocumentLimits(), OperationLimits(), introspection=False, locations=False)
    return TrustedDocuments.load(path, ONLY, execution.pin)


def text_of(documents: TrustedDocuments, id: str) -> str:
    """Return the text of an id."""
    return documents.resolve(OperationRequest("", None, None, document_id=id))


def write(path: Path, content: object) -> Path:
    """Write a file; values other than strings are written as JSON."""
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def refusal(path: Path) -> str:
    """Return the error message for a path that is refused, without the folder."""
    with pytest.raises(SettingsError) as caught:
        load(path)
    return str(caught.value).replace(f"{path.parent}/", "")


@pytest.mark.parametrize(
    "manifest",
    [
        {"one": VIEWER},
        {**APOLLO, "operations": [{"id": "one", "name": "One", "type": "query", "body": VIEWER}]},
        {**APOLLO, "operations": [{"id": "one", "body": VIEWER, "clientName": "web"}]},
    ],
)
def test_every_format_of_manifests_is_read(tmp_path: Path, manifest: dict[str, Any]) -> None:
    """A document is found by its id and by the hash of its text."""
    documents = load(write(tmp_path / "manifest.json", manifest))
    assert len(documents) == 1
    assert text_of(documents, "one") == VIEWER
    assert text_of(documents, "sha256:" + hashlib.sha256(VIEWER.encode()).hexdigest()) == VIEWER


def test_a_folder_of_documents_and_manifests(tmp_path: Path) -> None:
    """Files with other extensions, hidden files and subfolders are ignored."""
    write(tmp_path / "viewer.graphql", f"{VIEWER}\n")
    write(tmp_path / "viewer-id.gql", "{ viewer { id } }")
    write(tmp_path / "relay.json", {"name": "{ viewer { user { name } } }", "same": "{ viewer { id } }"})
    write(tmp_path / "apollo.json", {**APOLLO, "operations": [{"id": "bio", "body": "{ viewer { user { bio } } }"}]})
    write(tmp_path / "README.md", "not a document")
    write(tmp_path / ".hidden.graphql", "not a document")
    (tmp_path / "inside").mkdir()
    write(tmp_path / "inside" / "other.graphql", "not a document")
    documents = load(tmp_path)
    assert len(documents) == 4
    assert text_of(documents, "viewer") == f"{VIEWER}\n"
    assert text_of(documents, "viewer-id") == text_of(documents, "same") == "{ viewer { id } }"
    assert text_of(documents, "name") == "{ viewer { user { name } } }"
    assert text_of(documents, "bio") == "{ viewer { user { bio } } }"


def test_a_single_graphql_file_is_read(tmp_path: Path) -> None:
    assert text_of(load(write(tmp_path / "viewer.graphql", VIEWER)), "viewer") == VIEWER


NESTED = "{ viewer { user { followers(first: 100) { nodes { followers(first: 100) { nodes { login } } } } } } }"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "m.json: invalid JSON: "),
        ("[" * 100_000, "m.json: invalid JSON: "),
        ([VIEWER], "m.json: must be a JSON object of ids and texts, or an apollo-persisted-query-manifest."),
        ({}, "m.json: there are no trusted documents. Add a manifest or .graphql files."),
        ({**APOLLO, "operations": []}, "m.json: there are no trusted documents"),
        ({"a": 7}, "m.json, document 'a': must be the text of a GraphQL document."),
        ({"a": " "}, "m.json, document 'a': must be the text of a GraphQL document."),
        ({"": VIEWER}, "m.json, document 1: the id must be a string of 1 to 256 characters."),
        ({"a": VIEWER, "x" * 257: VIEWER}, "m.json, document 2: the id must be a string of 1 to 256 characters."),
        ({"a": '{ post(id: "\ud800") { id } }'}, "m.json, document 'a': contains a lone surrogate"),
        ({"a": "{ viewer {"}, "m.json, document 'a': Syntax Error: Expected Name, found <EOF>. (line 1, column 11)"),
        (
            {"ok": VIEWER, "a": "{\n  nobody }"},
            "m.json, document 'a': Cannot query field 'nobody' on type 'Query'. (line 2, column 3)",
        ),
        ({"a": "{ __schema { types { name } } }"}, "m.json, document 'a': GraphQL introspection has been disabled"),
        ({"a": "{" + "a: viewer { id }" * 101 + "}"}, "m.json, document 'a': The document has "),
        ({"a": "{" + " viewer { id }" * 2000 + "}"}, "m.json, document 'a': Syntax Error: Document contains more "),
        ({"a": NESTED}, "m.json, document 'a': The operation "),
        ({f"sha256:{'0' * 64}": VIEWER}, "the id is not the SHA-256 hash of the text, which is sha256:"),
        (
            '{"a": "{ viewer { id } }", "a": "{ viewer { user { bio } } }"}',
            "m.json, document 'a': m.json contains the same id",
        ),
        (
            {**APOLLO, "version": 2, "operations": []},
            "must have the format 'apollo-persisted-query-manifest', version 1",
        ),
        ({"format": "other", "operations": []}, "must have the format 'apollo-persisted-query-manifest', version 1"),
        (APOLLO, "m.json: 'operations' must be a list."),
        ({**APOLLO, "operations": [VIEWER]}, "m.json, document 1: must be an object with an 'id' and a 'body'."),
        ({**APOLLO, "operations": [{"body": VIEWER}]}, "m.json, document 1: the id must be a string"),
        ({**APOLLO, "operations": [{"id": "a"}]}, "m.json, document 'a': must be the text of a GraphQL document."),
        ({str(number): VIEWER for number in range(1_001)}, "m.json: there are more than 1,000 trusted documents."),
        (
            {"a": f"{VIEWER} #{'x' * 2 * 1024 * 1024}"},
            "m.json: the trusted documents together exceed the limit of 2 MB.",
        ),
    ],
)
def test_errors_of_a_manifest_name_the_document(tmp_path: Path, content: object, sentence: str) -> None:
    """The message contains the file, the document and, for invalid documents, the location."""
    assert sentence in refusal(write(tmp_path / "m.json", content))


def test_equal_entries_are_allowed(tmp_path: Path) -> None:
    """The manifests of two front ends may have common entries."""
    write(tmp_path / "a.json", {"one": VIEWER})
    write(tmp_path / "b.json", {"one": VIEWER})
    assert len(load(tmp_path)) == 1


def test_two_files_with_different_texts_for_an_id_are_refused(tmp_path: Path) -> None:
    """The message names both files."""
    write(tmp_path / "a.json", {"one": VIEWER})
    write(tmp_path / "one.graphql", "{ viewer { id } }")
    said = refusal(tmp_path)
    assert "one.graphql, document 'one': " in said
    assert "a.json contains the same id with a different text." in said


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    """Missing paths, other file types, folders in place of files, other encodings and empty folders are refused."""
    assert refusal(tmp_path / "missing.json").startswith("missing.json: there is no such file or folder")
    assert "must be a folder, or a file that ends in" in refusal(write(tmp_path / "list.txt", "x"))
    (tmp_path / "empty").mkdir()
    assert refusal(tmp_path / "empty").startswith("empty: there are no trusted documents")
    (tmp_path / "empty" / "folder.json").mkdir()
    assert "folder.json: is not a regular file" in refusal(tmp_path / "empty")
    (tmp_path / "latin.graphql").write_bytes(b"# caf\xe9\n{ viewer { id } }")
    assert "latin.graphql is not UTF-8" in refusal(tmp_path / "latin.graphql")


def test_long_ids_are_truncated_in_errors(tmp_path: Path) -> None:
    assert len(refusal(write(tmp_path / "m.json", {"x" * 256: "{"}))) < 250


def test_the_settings_of_trusted_documents(tmp_path: Path) -> None:
    """A path alone enables the mode `allow`; `only` and `allow` require a path."""
    path = str(tmp_path)
    assert Settings.load({}).trust is TrustedDocumentsMode.OFF
    assert Settings.load({"FANLINE_TRUSTED_DOCUMENTS": path}).trust is ALLOW
    given = {"FANLINE_TRUSTED_DOCUMENTS": path, "FANLINE_TRUSTED_DOCUMENTS_MODE": "Only"}
    assert Settings.load(given).trust is ONLY
    assert Settings.load(given | {"FANLINE_TRUSTED_DOCUMENTS_MODE": "off"}).trust is TrustedDocumentsMode.OFF
    for mode in ("only", "allow"):
        with pytest.raises(SettingsError, match=f"TRUSTED_DOCUMENTS_MODE={mode} needs FANLINE_TRUSTED_DOCUMENTS"):
            Settings.load({"FANLINE_TRUSTED_DOCUMENTS_MODE": mode})
    with pytest.raises(SettingsError, match="FANLINE_TRUSTED_DOCUMENTS_MODE"):
        Settings.load(given | {"FANLINE_TRUSTED_DOCUMENTS_MODE": "strict"})
