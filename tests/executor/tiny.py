"""Tiny schemas for tests of execution: a field in a line, and both ways of executing a document over them."""

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
    """Declare a field that is resolved for each parent, or by default."""
    return GraphQLField(type_, {name: GraphQLArgument(each) for name, each in arguments.items()}, resolve=resolve)


def in_batches(type_: GraphQLOutputType, resolver: Callable[..., Any], **arguments: Any) -> GraphQLField:
    """Declare a field that is resolved for all parents at once."""
    args = {name: GraphQLArgument(each) for name, each in arguments.items()}
    return GraphQLField(type_, args, extensions={"batch": resolver})


def schema_of(fields: Mapping[str, GraphQLField], mutations: Mapping[str, GraphQLField] | None = None) -> GraphQLSchema:
    """Make a schema of root fields."""
    changes = GraphQLObjectType("Mutation", dict(mutations)) if mutations else None
    return GraphQLSchema(GraphQLObjectType("Query", dict(fields)), changes)


def numbered(fields: Mapping[str, GraphQLField]) -> GraphQLSchema:
    """Make a schema whose root field `items` gives the numbers 0, 1, 2 as objects with these fields."""
    item = GraphQLObjectType("Item", dict(fields))
    items = resolved(GraphQLList(item), lambda *_, count=3: list(range(count)), count=GraphQLInt)
    return schema_of({"items": items})


async def ask(schema: GraphQLSchema, document: str, **options: Any) -> ExecutionResult:
    """Execute a document by a fresh executor, which must not hand it to graphql-core."""
    parsed = parse(document)
    assert validate(schema, parsed) == []
    executor = Executor(schema)
    result = await executor.execute(parsed, **options)
    assert executor.planned == 1
    return result


async def ask_both(schema: GraphQLSchema, document: str, **options: Any) -> ExecutionResult:
    """Execute a document by a fresh executor, which must plan it and answer as graphql-core does."""
    result = await ask(schema, document, **options)
    expected = execute(schema, parse(document), **options)
    assert differences(await expected if isawaitable(expected) else expected, result) == []
    return result


def messages(result: ExecutionResult) -> list[tuple[tuple[str | int, ...], str]]:
    """Give the errors of a result as paths and messages."""
    return [(tuple(error.path or ()), error.message) for error in result.errors or ()]
