"""`@skip` and `@include`: on fields, spreads and inline fragments, with literals and variables."""

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
async def test_a_condition_leaves_in_or_out(document: str, condition: str, stays: bool) -> None:
    """Both conditions must hold, in any order."""
    result = await ask_both(SCHEMA, document.format(condition), root_value=ROOT)
    assert result.data == ({"a": "a", "b": "b"} if stays else {"a": "a"})


async def test_what_one_place_leaves_out_another_may_ask_for() -> None:
    """A field stays if it is asked for anywhere; it keeps the place where it was first left in."""
    document = "{ b @skip(if: true) a ... @include(if: true) { b } o { a @skip(if: true) } o { b } }"
    result = await ask_both(SCHEMA, document, root_value=ROOT)
    assert list(result.data or {}) == ["a", "b", "o"]
    assert (result.data or {})["o"] == {"b": "inner b"}


async def test_one_document_runs_with_all_its_conditions() -> None:
    """The plan of one choice never serves another, in whatever order they come."""
    executor = Executor(SCHEMA)
    document = parse(
        "query ($x: Boolean!, $y: Boolean = false) { a @skip(if: $x) o @include(if: $x) { b @skip(if: $y) a } }"
    )
    for variables in ({"x": True}, {"x": False}, {"x": True, "y": True}, {"x": True, "y": False}, {"x": True}):
        result = await executor.execute(document, root_value=ROOT, variable_values=variables)
        inner = {"a": "inner a"} if variables.get("y") else {"b": "inner b", "a": "inner a"}
        assert result.data == ({"o": inner} if variables["x"] else {"a": "a"})
    assert executor.fallen_back == 0


async def test_the_conditions_of_another_operation_do_not_matter() -> None:
    """A document's operations have variables of their own."""
    executor = Executor(SCHEMA)
    document = parse("query A { a } query B($x: Boolean!) { b @skip(if: $x) a }")
    assert (await executor.execute(document, root_value=ROOT, operation_name="A")).data == {"a": "a"}
    for skipped in (True, False):
        result = await executor.execute(document, root_value=ROOT, operation_name="B", variable_values={"x": skipped})
        assert result.data == ({"a": "a"} if skipped else {"b": "b", "a": "a"})
    assert executor.fallen_back == 0


async def test_a_condition_that_is_null_is_an_error_where_it_stands() -> None:
    """A variable with a default may be given as null, which validation cannot see."""
    executor = Executor(SCHEMA)
    document = parse("query ($x: Boolean = true) { a o { b @include(if: $x) } }")
    result = await executor.execute(document, root_value=ROOT, variable_values={"x": None})
    assert result.data == {"a": "a", "o": None}
    assert [error.path for error in result.errors or ()] == [["o"]]
