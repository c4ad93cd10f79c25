"""Unsupported operations: graphql-core executes them as a whole, and the executor counts them."""

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
    """Introspection returns the same result as graphql-core."""
    executor = Executor(SCHEMA)
    result = await executor.execute(parse(get_introspection_query()))
    assert result.data == graphql_sync(SCHEMA, get_introspection_query()).data
    assert (executor.planned, executor.fallen_back) == (0, 1)
    assert introspection_from_schema(SCHEMA)["__schema"]


@pytest.mark.parametrize("field", ['__type(name: "Query") { name }', "__schema { queryType { name } }"])
async def test_introspection_with_other_fields_makes_the_whole_operation_fall_back(field: str) -> None:
    """The whole operation falls back, even if the field is in a fragment."""
    executor = Executor(SCHEMA)
    for document in (f"{{ a {field} }}", f"{{ a ...F }} fragment F on Query {{ {field} }}"):
        result = await executor.execute(parse(document), root_value={"a": 1})
        assert result.errors is None
        assert list(result.data or {}) == ["a", field.split("(")[0].split()[0]]
    assert (executor.planned, executor.fallen_back) == (0, 2)


async def test_an_asynchronous_type_check_falls_back() -> None:
    """Asynchronous checks fall back, both for interfaces and for plain objects."""

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


async def test_runs_are_counted() -> None:
    """The executor counts planned operations, those with errors, and those that fell back."""
    executor = Executor(
        schema_of({"fails": resolved(GraphQLInt, lambda *_: LookupError("x")), "a": resolved(GraphQLInt)})
    )
    for document in ("{ a }", "{ a }", "{ fails }", "{ __schema { description } }"):
        await executor.execute(parse(document))
    assert (executor.planned, executor.slow, executor.fallen_back) == (3, 1, 1)
