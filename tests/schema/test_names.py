"""The schema avoids names that code generators for other languages cannot use.

Generators escape keywords. The remaining problem is names that already have another meaning in the generated code.
"""

import re

import pytest
from graphql import GraphQLEnumType, GraphQLInterfaceType, GraphQLObjectType, build_schema, is_introspection_type

import schema

ENUM_CASES = {"none", "some", "self", "init", "type", "protocol", "name", "ordinal", "entries", "values", "valueOf"}
"""In Swift, `.none` and `.some` of an optional, `.self`, `.init` and `.Type` mean something else. In Kotlin, each enum
has `name`, `ordinal`, `entries`, `values` and `valueOf`."""
FIELDS = {"self", "init", "hash", "hashValue", "description", "debugDescription", "fragments", "class", "toString"}
"""The generated class of a type has these members in Swift or Kotlin."""
TYPES = {"Any", "Array", "Bool", "Character", "Data", "Date", "Dictionary", "Double", "Error", "List", "Map", "Never"}
TYPES |= {"Optional", "Protocol", "Result", "Self", "Set", "Task", "Type", "URL", "Unit", "Void"}
"""The types of the standard libraries of Swift and Kotlin that a type of the same name would hide."""

DEFINED = [each for each in build_schema(schema.sdl()).type_map.values() if not is_introspection_type(each)]
ENUMS = [each for each in DEFINED if isinstance(each, GraphQLEnumType)]
OBJECTS = [each for each in DEFINED if isinstance(each, GraphQLObjectType | GraphQLInterfaceType)]


@pytest.mark.parametrize("type_", ENUMS, ids=str)
def test_the_values_of_enums_mean_nothing_else(type_: GraphQLEnumType) -> None:
    """Generators write `FOLLOWED_BY` as `followedBy` in Swift."""
    cases = {re.sub(r"_(\w)", lambda letter: letter[1].upper(), value.lower()) for value in type_.values}
    assert not cases & ENUM_CASES


@pytest.mark.parametrize("type_", OBJECTS, ids=str)
def test_types_and_fields_have_names_of_their_own(type_: GraphQLObjectType) -> None:
    assert type_.name not in TYPES
    assert not type_.fields.keys() & FIELDS
