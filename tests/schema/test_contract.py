"""The schema keeps the contract with front ends, and `schema.graphql` is current."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    build_schema,
    find_breaking_changes,
    find_dangerous_changes,
    is_introspection_type,
    is_specified_scalar_type,
    validate_schema,
)

import schema

ROOT = Path(__file__).parents[2]
CONTRACT = (ROOT / "tests" / "contract.graphql").read_text("utf-8")


def own_types(of: GraphQLSchema) -> Iterator[Any]:
    for each in of.type_map.values():
        if not is_introspection_type(each) and not is_specified_scalar_type(each):
            yield each


def test_the_schema_has_no_breaking_or_dangerous_changes() -> None:
    contract, ours = build_schema(CONTRACT), build_schema(schema.sdl())
    assert find_breaking_changes(contract, ours) == []
    assert find_dangerous_changes(contract, ours) == []


def test_one_of_and_specified_by_are_kept() -> None:
    """find_breaking_changes ignores @oneOf and @specifiedBy."""
    contract, ours = build_schema(CONTRACT).type_map, build_schema(schema.sdl()).type_map
    kept = [
        (name, attribute)
        for name in contract.keys() & ours.keys()
        for attribute in ("is_one_of", "specified_by_url")
        if getattr(contract[name], attribute, None)
        and getattr(ours[name], attribute) == getattr(contract[name], attribute)
    ]
    assert ("UserBy", "is_one_of") in kept
    assert ("DateTime", "specified_by_url") in kept


def test_defaults_are_those_of_the_contract() -> None:
    """No argument or input field has another default, such as `= null`."""
    assert "= null" not in schema.sdl()
    assert schema.sdl().count(" = ") == 2
    assert "everywhere: Boolean = false" in schema.sdl()
    assert "first: Int! = 3" in schema.sdl()


def test_the_schema_has_a_description() -> None:
    """In the SDL, which tools read from a file, and by introspection."""
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
