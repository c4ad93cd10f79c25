"""Interfaces and unions: type resolution, selections by type, and errors."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from graphql import (
    GraphQLField,
    GraphQLInt,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLString,
    GraphQLUnionType,
)

from tests.executor.tiny import ask, ask_both, in_batches, messages, resolved

PETS = [{"kind": "Dog", "name": "Odie", "barks": 3}, {"kind": "Cat", "name": "Garfield", "lives": 9}]
DOCUMENT = "{ pets { __typename ... on Named { name } ... on Dog { barks } ... on Cat { lives } } }"
EXPECTED = {
    "pets": [
        {"__typename": "Dog", "name": "Odie", "barks": 3},
        {"__typename": "Cat", "name": "Garfield", "lives": 9},
    ]
}


def pet_schema(
    pets: Any = PETS,
    *,
    resolve_type: Callable[..., Any] | None = None,
    tests: Mapping[str, Callable[..., bool]] | None = None,
    union: bool = False,
) -> GraphQLSchema:
    """Return a schema of cats and dogs behind an interface or a union."""
    tests = tests or {}
    living = GraphQLInterfaceType("Living", {"name": GraphQLField(GraphQLString)}, resolve_type=resolve_type)
    named = GraphQLInterfaceType(
        "Named", {"name": GraphQLField(GraphQLString)}, interfaces=[living], resolve_type=resolve_type
    )
    own = {"Dog": "barks", "Cat": "lives"}
    animals = [
        GraphQLObjectType(
            name,
            {"name": resolved(GraphQLString), own[name]: resolved(GraphQLInt)},
            interfaces=[named, living],
            is_type_of=tests.get(name),
        )
        for name in own
    ]
    stone = GraphQLObjectType("Stone", {"name": resolved(GraphQLString)})
    pet = GraphQLUnionType("Pet", animals, resolve_type=resolve_type) if union else named
    query = GraphQLObjectType(
        "Query", {"pets": resolved(GraphQLList(pet), lambda *_: pets), "living": resolved(living, lambda *_: pets[0])}
    )
    return GraphQLSchema(query, types=[*animals, stone])


def by_kind(value: Any, info: Any, abstract_type: Any) -> Any:
    """Return the type of a pet."""
    return value["kind"]


TESTS = {"Dog": lambda value, info: "barks" in value, "Cat": lambda value, info: "lives" in value}


@pytest.mark.parametrize("union", [False, True])
@pytest.mark.parametrize("way", ["resolve_type", "is_type_of", "__typename"])
async def test_object_types_are_resolved(way: str, union: bool) -> None:
    """Types are resolved by `resolve_type`, by `is_type_of`, or by `__typename` of the object."""
    if way == "resolve_type":
        schema = pet_schema(resolve_type=by_kind, union=union)
    elif way == "is_type_of":
        schema = pet_schema(tests=TESTS, union=union)
    else:
        schema = pet_schema([{**pet, "__typename": pet["kind"]} for pet in PETS], union=union)
    result = await ask_both(schema, DOCUMENT)
    assert (result.data, result.errors) == (EXPECTED, None)


async def test_fragments_on_interfaces_apply_to_implementing_objects() -> None:
    """Fragments can have the field's interface, an interface of that interface, or no type."""
    document = """
      { living { ... on Named { ...Both } ... { called: name } } }
      fragment Both on Living { name ... on Cat { lives } ... on Dog { barks } }
    """
    result = await ask_both(pet_schema(resolve_type=by_kind), document)
    assert result.data == {"living": {"name": "Odie", "barks": 3, "called": "Odie"}}
    assert list((result.data or {})["living"]) == ["name", "barks", "called"]


async def test_a_key_can_mean_different_fields_for_different_types() -> None:
    """A key can mean different fields for different object types."""
    document = "{ pets { ... on Dog { count: barks } ... on Cat { count: lives } } }"
    result = await ask_both(pet_schema(resolve_type=by_kind), document)
    assert result.data == {"pets": [{"count": 3}, {"count": 9}]}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "Abstract type 'Named' must resolve to an Object type at runtime for field 'Query.pets'."),
        ("Ghost", "Abstract type 'Named' was resolved to a type 'Ghost' that does not exist inside the schema."),
        ("Living", "Abstract type 'Named' was resolved to a non-object type 'Living'."),
        ("Stone", "Runtime Object type 'Stone' is not a possible type for 'Named'."),
        (7, "Abstract type 'Named' must resolve to an Object type at runtime for field 'Query.pets' with value"),
    ],
)
async def test_an_invalid_type_is_an_error_of_the_object(answer: Any, message: str) -> None:
    """Other objects are not affected."""

    def sometimes(value: Any, info: Any, abstract_type: Any) -> Any:
        return answer if value["kind"] == "Dog" else "Cat"

    result = await ask_both(pet_schema(resolve_type=sometimes), DOCUMENT)
    assert result.data == {"pets": [None, EXPECTED["pets"][1]]}
    [(path, text)] = messages(result)
    assert path == ("pets", 0)
    assert text.startswith(message)


async def test_a_type_resolver_that_raises_fails_its_object_only() -> None:
    """A failing `is_type_of` also fails only its object."""

    def fail(value: Any, *_: Any) -> Any:
        if value["kind"] == "Dog":
            raise LookupError("what is it?")
        return "Cat"

    for schema in (pet_schema(resolve_type=fail), pet_schema(tests={"Dog": fail, "Cat": fail})):
        result = await ask_both(schema, "{ pets { name } }")
        assert messages(result)[0] == (("pets", 0), "what is it?")


async def test_an_object_rejected_by_its_type_is_an_error() -> None:
    """`is_type_of` is called after `resolve_type` as well, and for plain object types."""
    schema = pet_schema(resolve_type=by_kind, tests={"Dog": lambda value, info: False, "Cat": lambda value, info: True})
    result = await ask_both(schema, DOCUMENT)
    assert result.data == {"pets": [None, EXPECTED["pets"][1]]}
    [(path, text)] = messages(result)
    assert (path, text[:37]) == (("pets", 0), "Expected value of type 'Dog' but got:")


async def test_a_type_resolver_receives_the_info_of_its_field() -> None:
    """The type resolver gets the `info` of the field, whose path ends at the field, as in graphql-core."""
    seen: list[Any] = []

    def look(value: Any, info: Any, abstract_type: Any) -> str:
        seen.append((info.field_name, info.path.as_list(), str(abstract_type), info.context))
        return str(value["kind"])

    await ask(pet_schema(resolve_type=look), "{ all: pets { name } }", context_value="context")
    assert seen == [("pets", ["all"], "Named", "context")] * 2


async def test_objects_of_one_type_are_resolved_as_one_batch() -> None:
    """Objects are grouped by type, one call for each type; the result has the order of the list."""
    calls: list[list[str]] = []

    def names(parents: Any, context: Any) -> list[str]:
        calls.append([pet["name"] for pet in parents])
        return [pet["name"].upper() for pet in parents]

    named = GraphQLInterfaceType("Named", {"name": GraphQLField(GraphQLString)}, resolve_type=by_kind)
    fields = {"name": in_batches(GraphQLString, names)}
    animals = [GraphQLObjectType(name, fields, interfaces=[named]) for name in ("Dog", "Cat")]
    pets = [{"kind": kind, "name": kind + str(n)} for n in range(2) for kind in ("Dog", "Cat")]
    query = GraphQLObjectType("Query", {"pets": resolved(GraphQLList(named), lambda *_: pets)})
    result = await ask(GraphQLSchema(query, types=animals), "{ pets { name } }")
    assert result.data == {"pets": [{"name": name} for name in ("DOG0", "CAT0", "DOG1", "CAT1")]}
    assert calls == [["Dog0", "Dog1"], ["Cat0", "Cat1"]]
