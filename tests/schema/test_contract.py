"""The schema keeps the contract with front ends, and `schema.graphql` is current."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    build_schema,
    is_introspection_type,
    is_specified_scalar_type,
    validate_schema,
)

import schema
from scripts.released_schema import breaking_changes, git, last_release

ROOT = Path(__file__).parents[2]


def own_types(of: GraphQLSchema) -> Iterator[Any]:
    for each in of.type_map.values():
        if not is_introspection_type(each) and not is_specified_scalar_type(each):
            yield each


TYPES = 'scalar S @specifiedBy(url: "https://example.org") input By @oneOf { id: ID login: S } '
QUERY = TYPES + "type Query { user(by: By): ID }"


@pytest.mark.parametrize(
    ("after", "found"),
    [
        (QUERY.replace("}", "new: ID }"), []),
        (QUERY.replace("user(", "person("), ["Field Query.user was removed."]),
        (QUERY.replace(" @oneOf", ""), ["By has another @oneOf or none."]),
        (QUERY.replace("example.org", "example.com"), ["S has another @specifiedBy or none."]),
    ],
)
def test_changes_that_break_clients_are_found(after: str, found: list[str]) -> None:
    """Additions do not break clients."""
    assert breaking_changes(QUERY, after) == found


def test_the_last_release_is_the_newest_tag(tmp_path: Path) -> None:
    """The highest version among the branch's tags counts. There may be no tags, or no repository."""
    assert last_release(tmp_path) is None
    git(tmp_path, "init", "-q")
    for number, tags in enumerate((["v0.9.0"], ["v0.10.0", "other"], [])):
        author = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        git(tmp_path, *author, "commit", "-q", "--allow-empty", "-m", str(number))
        for tag in tags:
            git(tmp_path, "tag", tag)
    assert last_release(tmp_path) == "v0.10.0"


def test_few_arguments_have_a_default() -> None:
    """Other optional arguments are null if omitted, without a default in the SDL."""
    found = {line.strip() for line in schema.sdl().splitlines() if " = " in line}
    assert found == {"everywhere: Boolean = false", "limit: Int! = 3", "limit: Int! = 20"}


def test_the_schema_has_a_description() -> None:
    """The description is in the SDL, which tools read from a file, and in introspection results."""
    assert "unknown `__typename`" in (build_schema(schema.sdl()).description or "")
    answer = schema.schema.execute_sync("{ __schema { description } }")
    assert answer.data == {"__schema": {"description": build_schema(schema.sdl()).description}}


def test_everything_is_described() -> None:
    """Every type, field, argument, enum value and input field has a description."""
    bare = [path for path, description in descriptions(build_schema(schema.sdl())) if len(description or "") < 8]
    assert bare == []


def test_descriptions_end_like_sentences() -> None:
    """A description ends with a full stop."""
    bare = [path for path, text in descriptions(build_schema(schema.sdl())) if not (text or "").endswith((".", "`."))]
    assert bare == []


def descriptions(of: GraphQLSchema) -> Iterator[tuple[str, str | None]]:
    for each in own_types(of):
        yield each.name, each.description
        if isinstance(each, GraphQLEnumType):
            for name, value in each.values.items():
                yield f"{each.name}.{name}", value.description
        if isinstance(each, GraphQLObjectType | GraphQLInterfaceType | GraphQLInputObjectType):
            for name, field in each.fields.items():
                yield f"{each.name}.{name}", field.description
                for argument, definition in getattr(field, "args", {}).items():
                    yield f"{each.name}.{name}({argument})", definition.description


def test_the_schema_is_valid() -> None:
    assert validate_schema(build_schema(schema.sdl())) == []


def test_the_committed_sdl_is_current() -> None:
    """Run `fanline schema > schema.graphql` to update it."""
    assert (ROOT / "schema.graphql").read_text("utf-8") == schema.sdl()
