"""What the executor does not cover is run by graphql-core as a whole, and counted."""

from typing import Any

import pytest
from graphql import (
    GraphQLField,
    GraphQLInt,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    build_schema,
    get_introspection_query,
    graphql_sync,
    introspection_from_schema,
    parse,
)

from executor import Executor
from tests.executor.tiny import resolved, schema_of

SCHEMA = build_schema("type Query { a: Int  o: Query }")


async def test_introspection_falls_back() -> None:
    """And answers as ever."""
    executor = Executor(SCHEMA)
    result = await executor.execute(parse(get_introspection_query()))
    assert result.data == graphql_sync(SCHEMA, get_introspection_query()).data
    assert (executor.planned, executor.fallen_back) == (0, 1)
    assert introspection_from_schema(SCHEMA)["__schema"]


@pytest.mark.parametrize("field", ['__type(name: "Query") { name }', "__schema { queryType { name } }"])
async def test_introspection_beside_other_fields_takes_the_whole_operation_along(field: str) -> None:
    """Never half of it: also where it stands in a fragment."""
    executor = Executor(SCHEMA)
    for document in (f"{{ a {field} }}", f"{{ a ...F }} fragment F on Query {{ {field} }}"):
        result = await executor.execute(parse(document), root_value={"a": 1})
        assert result.errors is None
        assert list(result.data or {}) == ["a", field.split("(")[0].split()[0]]
    assert (executor.planned, executor.fallen_back) == (0, 2)


async def test_a_type_test_that_must_be_awaited_falls_back() -> None:
    """Whether it decides the type of an interface's object, or confirms a plain object."""

    async def test(value: Any, info: Any) -> bool:
        return True

    face = GraphQLInterfaceType("Face", {"n": GraphQLField(GraphQLInt)})
    thing = GraphQLObjectType("Thing", {"n": resolved(GraphQLInt)}, interfaces=[face], is_type_of=test)
    fields = {"face": resolved(face, lambda *_: {"n": 1}), "thing": resolved(thing, lambda *_: {"n": 2})}
    schema = GraphQLSchema(GraphQLObjectType("Query", fields), types=[thing])
    executor = Executor(schema)
    result = await executor.execute(parse("{ face { n } thing { n } }"))
    assert (result.data, result.errors) == ({"face": {"n": 1}, "thing": {"n": 2}}, None)
    assert (executor.planned, executor.fallen_back) == (0, 1)


async def test_the_runs_are_counted() -> None:
    """By plan; among them those in which anything failed; and those that graphql-core has run."""
    executor = Executor(
        schema_of({"fails": resolved(GraphQLInt, lambda *_: LookupError("x")), "a": resolved(GraphQLInt)})
    )
    for document in ("{ a }", "{ a }", "{ fails }", "{ __schema { description } }"):
        await executor.execute(parse(document))
    assert (executor.planned, executor.slow, executor.fallen_back) == (3, 1, 1)
