"""`@skip` and `@include` on fields, fragment spreads and inline fragments, with literals and variables."""

from typing import Any

import pytest
from graphql import build_schema, parse

from executor import Executor
from tests.executor.tiny import ask_both

SCHEMA = build_schema("type Query { a: String  b: String  o: Query }")
ROOT: dict[str, Any] = {"a": "a", "b": "b", "o": {"a": "inner a", "b": "inner b", "o": None}}


@pytest.mark.parametrize(
    ("condition", "stays"),
    [
        ("@include(if: true)", True),
        ("@include(if: false)", False),
        ("@skip(if: true)", False),
        ("@skip(if: false)", True),
        ("@include(if: true) @skip(if: false)", True),
        ("@include(if: true) @skip(if: true)", False),
        ("@include(if: false) @skip(if: false)", False),
        ("@skip(if: true) @include(if: true)", False),
    ],
)
@pytest.mark.parametrize(
    "document",
    [
        "{{ a b {} }}",
        "{{ a ... on Query {} {{ b }} }}",
        "{{ a ... {} {{ b }} }}",
        "{{ a ...Part {} }} fragment Part on Query {{ b }}",
    ],
)
async def test_conditions_include_or_skip_fields(document: str, condition: str, stays: bool) -> None:
    """If both directives are present, both conditions must hold."""
    result = await ask_both(SCHEMA, document.format(condition), root_value=ROOT)
    assert result.data == ({"a": "a", "b": "b"} if stays else {"a": "a"})


async def test_a_field_is_included_if_any_occurrence_is_included() -> None:
    """A field is included if any occurrence is included, in the position of the first one included."""
    document = "{ b @skip(if: true) a ... @include(if: true) { b } o { a @skip(if: true) } o { b } }"
    result = await ask_both(SCHEMA, document, root_value=ROOT)
    assert list(result.data or {}) == ["a", "b", "o"]
    assert (result.data or {})["o"] == {"b": "inner b"}


async def test_one_document_runs_with_all_combinations_of_conditions() -> None:
    """Each combination of conditions has its own plan."""
    executor = Executor(SCHEMA)
    document = parse(
        "query ($x: Boolean!, $y: Boolean = false) { a @skip(if: $x) o @include(if: $x) { b @skip(if: $y) a } }"
    )
    for variables in ({"x": True}, {"x": False}, {"x": True, "y": True}, {"x": True, "y": False}, {"x": True}):
        result = await executor.execute(document, root_value=ROOT, variable_values=variables)
        inner = {"a": "inner a"} if variables.get("y") else {"b": "inner b", "a": "inner a"}
        assert result.data == ({"o": inner} if variables["x"] else {"a": "a"})
    assert executor.fallen_back == 0


async def test_conditions_of_other_operations_are_ignored() -> None:
    """The operations of a document have their own variables."""
    executor = Executor(SCHEMA)
    document = parse("query A { a } query B($x: Boolean!) { b @skip(if: $x) a }")
    assert (await executor.execute(document, root_value=ROOT, operation_name="A")).data == {"a": "a"}
    for skipped in (True, False):
        result = await executor.execute(document, root_value=ROOT, operation_name="B", variable_values={"x": skipped})
        assert result.data == ({"a": "a"} if skipped else {"b": "b", "a": "a"})
    assert executor.fallen_back == 0


async def test_a_null_condition_is_an_error_of_its_selection() -> None:
    """A variable with a default can be null at run time, which validation cannot detect."""
    executor = Executor(SCHEMA)
    document = parse("query ($x: Boolean = true) { a o { b @include(if: $x) } }")
    result = await executor.execute(document, root_value=ROOT, variable_values={"x": None})
    assert result.data == {"a": "a", "o": None}
    assert [error.path for error in result.errors or ()] == [["o"]]
