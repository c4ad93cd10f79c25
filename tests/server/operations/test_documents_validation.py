"""Validation of documents: the specified rules, with bounds for the expensive ones."""

import pytest
from graphql import get_introspection_query, parse, specified_rules, validate

from schema import schema as strawberry_schema
from server.operations.documents import MAX_ERRORS, DocumentCache, DocumentRefused
from server.operations.parsing import DocumentLimits, measure
from server.operations.validation import MAX_INVALID_VALUES, MAX_LINES, REPLACED, RULES

SCHEMA = strawberry_schema._schema


def errors(text: str) -> list[str]:
    """Validate a document; return the messages of its errors."""
    return [
        error.message for error in validate(SCHEMA, parse(text, max_tokens=DocumentLimits().tokens), RULES, MAX_ERRORS)
    ]


def test_every_specified_rule_is_checked() -> None:
    """Each of graphql-core's rules, or its replacement, runs in the same order."""
    assert [*RULES[1:-1]] == [REPLACED.get(rule, rule) for rule in specified_rules]
    assert set(REPLACED) < set(specified_rules)


@pytest.mark.parametrize("line_break", ["\n", "\r", "\r\n"])
def test_a_document_has_a_limited_number_of_lines(line_break: str) -> None:
    """Otherwise each of twenty errors would scan up to 250,000 lines for its location."""
    document = "{viewer {" + line_break * (MAX_LINES - 1) + "id}}"

    assert errors(document) == []
    assert errors(document.replace("id", line_break + "unknown")) == [
        f"The document has {MAX_LINES + 1:,} lines; the limit is {MAX_LINES:,}. Remove blank lines."
    ]


def test_a_document_without_locations_is_validated() -> None:
    """Without locations, the number of lines does not matter."""
    document = parse("{viewer {" + "\n" * MAX_LINES + "id}}", no_location=True)

    assert validate(SCHEMA, document, RULES) == []


def test_invalid_values_are_reported_a_few_times() -> None:
    """Each error quotes the whole value, which takes milliseconds if the value is as long as a document."""
    unknown = " ".join(f"x{number}: 1" for number in range(50))
    found = errors(f"{{user(by: {{{unknown}}}) {{id}}}}")

    assert len(found) == MAX_INVALID_VALUES + 1
    assert found[0].startswith("Expected value of type 'UserBy' not to include unknown field 'x0'")
    assert found[-1] == "Validation stopped after 5 invalid values."


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ('{ user(by: {id: "1", login: "a"}) { id } }', "must specify exactly one field; this has 2."),
        ("{ user(by: {}) { id } }", "must specify exactly one field; this has 0."),
        ("{ user(by: {id: null}) { id } }", "Field 'UserBy.id' must not be null."),
        ("query ($id: ID) { user(by: {id: $id}) { id } }", "Variable '$id' must be non-null"),
        (
            "query ($id: ID) { ...F } fragment F on Query { user(by: {id: $id}) { id } }",
            "Variable '$id' must be non-null",
        ),
    ],
)
def test_an_input_with_exactly_one_field_is_checked_in_literals(document: str, message: str) -> None:
    """It is checked before any field of the document is resolved."""
    [error] = errors(document)
    assert message in error


@pytest.mark.parametrize(
    "document",
    [
        '{ user(by: {login: "a"}) { id } }',
        "query ($id: ID!) { user(by: {id: $id}) { id } }",
        "query ($by: UserBy!) { user(by: $by) { id } }",
    ],
)
def test_an_input_with_exactly_one_field_is_valid(document: str) -> None:
    assert errors(document) == []


def test_operations_cannot_share_fragments_without_limit() -> None:
    """Sixty operations that spread a fragment of 400 variables are refused; one such operation is not."""
    fragment = "fragment F on Query {nodes(ids: [" + "$id " * 400 + "]) {id}}"
    operations = [f"query Q{number}($id: ID!) {{...F}} " for number in range(60)]

    assert errors(operations[0] + fragment) == []
    assert errors("".join(operations) + fragment) == ["Validation aborted."]


def test_documents_of_real_clients_are_far_from_the_limits() -> None:
    """Relay compiles such documents: forty nested fragments that use the variables of the operation."""
    fragments = "".join(
        f"fragment F{number} on User {{id followers(first: $first) {{nodes {{id}}}} ...F{number + 1}}} "
        for number in range(40)
    )
    text = "query Screen($first: Int!) {viewer { user { ...F0 } }} " + fragments + "fragment F40 on User {name}"

    assert errors(text) == []


@pytest.mark.parametrize("introspection", [True, False])
def test_the_document_cache_applies_these_rules(introspection: bool) -> None:
    documents = DocumentCache(SCHEMA, DocumentLimits(), introspection=introspection)

    with pytest.raises(DocumentRefused, match="Remove blank lines"):
        documents.prepare("{viewer {" + "\n" * MAX_LINES + "id}}")


@pytest.mark.parametrize(
    "document",
    [
        '{ __schema { types { name fields { name type { name } } } queryType { name } } __type(name: "X") { name } }',
        "{ ...A ...B } fragment A on Query { __schema { types { name } } } fragment B on Query { ...A __typename }",
        get_introspection_query(),
    ],
    ids=["two fields", "fragments", "the usual query"],
)
def test_disabled_introspection_is_reported_once(document: str) -> None:
    documents = DocumentCache(SCHEMA, DocumentLimits(), introspection=False)
    with pytest.raises(DocumentRefused) as refused:
        documents.prepare(document)
    found = [error.message for error in refused.value.errors if "introspection has been disabled" in error.message]
    assert found == [
        "GraphQL introspection has been disabled, but the document contains the field '__schema'. "
        "Ask the operator for the schema."
    ]
    DocumentCache(SCHEMA, DocumentLimits(), introspection=True).prepare(get_introspection_query())


def test_fields_with_an_alias_count_at_every_depth() -> None:
    document = parse("{ a: viewer { user { b: id ... { c: login } ...F } } } fragment F on User { d: name }")

    assert measure(document).aliases == 4
