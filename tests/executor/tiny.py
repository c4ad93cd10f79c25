"""Small schemas for tests of the executor, and functions that execute documents with both executors."""

from collections.abc import Callable, Mapping
from inspect import isawaitable
from typing import Any

from graphql import (
    ExecutionResult,
    GraphQLArgument,
    GraphQLField,
    GraphQLInt,
    GraphQLList,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLSchema,
    execute,
    parse,
    validate,
)

from executor import Executor
from tests.executor.differential.comparison import differences


def resolved(type_: GraphQLOutputType, resolve: Callable[..., Any] | None = None, **arguments: Any) -> GraphQLField:
    """Return a field with an ordinary resolver, or the default one."""
    return GraphQLField(type_, {name: GraphQLArgument(each) for name, each in arguments.items()}, resolve=resolve)


def in_batches(type_: GraphQLOutputType, resolver: Callable[..., Any], **arguments: Any) -> GraphQLField:
    """Return a field with a batch resolver."""
    args = {name: GraphQLArgument(each) for name, each in arguments.items()}
    return GraphQLField(type_, args, extensions={"batch": resolver})


def schema_of(fields: Mapping[str, GraphQLField], mutations: Mapping[str, GraphQLField] | None = None) -> GraphQLSchema:
    """Return a schema with these root fields."""
    changes = GraphQLObjectType("Mutation", dict(mutations)) if mutations else None
    return GraphQLSchema(GraphQLObjectType("Query", dict(fields)), changes)


def numbered(fields: Mapping[str, GraphQLField]) -> GraphQLSchema:
    """Return a schema whose root field `items` returns the numbers 0, 1, 2 as objects with these fields."""
    item = GraphQLObjectType("Item", dict(fields))
    items = resolved(GraphQLList(item), lambda *_, count=3: list(range(count)), count=GraphQLInt)
    return schema_of({"items": items})


async def ask(schema: GraphQLSchema, document: str, **options: Any) -> ExecutionResult:
    """Execute a document with a new executor, which must not pass it to graphql-core."""
    parsed = parse(document)
    assert validate(schema, parsed) == []
    executor = Executor(schema)
    result = await executor.execute(parsed, **options)
    assert executor.planned == 1
    return result


async def ask_both(schema: GraphQLSchema, document: str, **options: Any) -> ExecutionResult:
    """Execute a document with a new executor, and check that the result equals graphql-core's."""
    result = await ask(schema, document, **options)
    expected = execute(schema, parse(document), **options)
    assert differences(await expected if isawaitable(expected) else expected, result) == []
    return result


def messages(result: ExecutionResult) -> list[tuple[tuple[str | int, ...], str]]:
    """Return the paths and messages of a result's errors."""
    return [(tuple(error.path or ()), error.message) for error in result.errors or ()]
