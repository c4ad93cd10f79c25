"""The schema keeps the contract that front ends are written against, and the committed SDL is in step."""

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


def test_nothing_in_the_contract_is_broken() -> None:
    """All is as promised."""
    contract, ours = build_schema(CONTRACT), build_schema(schema.sdl())
    assert find_breaking_changes(contract, ours) == []
    assert find_dangerous_changes(contract, ours) == []


def test_one_of_and_specified_by_are_kept() -> None:
    """What find_breaking_changes overlooks: @oneOf and @specifiedBy."""
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


def test_defaults_are_the_contracts() -> None:
    """Input fields and arguments have the contract's defaults and no others; in particular no `= null`."""
    assert "= null" not in schema.sdl()
    assert schema.sdl().count(" = ") == 1
    assert "everywhere: Boolean = false" in schema.sdl()


def test_everything_is_described() -> None:
    """Every type, field, argument, enum value and input field has a description: a sentence, or the start of one."""
    bare = [path for path, description in descriptions(build_schema(schema.sdl())) if len(description or "") < 8]
    assert bare == []


def test_descriptions_end_like_sentences() -> None:
    """A description ends with a full stop, so that they read alike in the playground."""
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
    """graphql-core finds nothing wrong with the printed schema."""
    assert validate_schema(build_schema(schema.sdl())) == []


def test_the_committed_sdl_is_in_step() -> None:
    """`schema.graphql` is what the code prints; `fanline schema > schema.graphql` renews it."""
    assert (ROOT / "schema.graphql").read_text("utf-8") == schema.sdl()
