"""The Strawberry extension: `strawberry.Schema(query=Query, extensions=[BreadthFirst])`."""

from collections.abc import AsyncIterator
from typing import Any
from weakref import WeakKeyDictionary

from strawberry.extensions import SchemaExtension
from strawberry.types.graphql import OperationType

from .execution import Executor

_executors: "WeakKeyDictionary[Any, Executor]" = WeakKeyDictionary()


def executor_of(schema: Any) -> Executor:
    """Return the executor of a Strawberry schema, creating it on first use."""
    executor = _executors.get(schema)
    if executor is None:
        executor = _executors[schema] = Executor(schema._schema)
    return executor


class BreadthFirst(SchemaExtension):
    """Executes queries and mutations breadth first.

    If another extension of the schema wraps resolvers, all operations use ordinary execution, so that the extension
    sees every field. Cache parsed documents (Strawberry's `ParserCache`); otherwise each request is planned anew.
    """

    async def on_execute(self) -> AsyncIterator[None]:
        """Execute a query or a mutation and set its result, so that Strawberry does not execute it."""
        execution = self.execution_context
        document, wrapped = execution.graphql_document, _wraps_resolvers(execution.schema)
        if document is not None and not wrapped and execution.operation_type is not OperationType.SUBSCRIPTION:
            execution.result = await executor_of(execution.schema).execute(
                document,
                root_value=execution.root_value,
                context_value=execution.context,
                variable_values=execution.variables,
                operation_name=execution.operation_name,
            )
        yield


def _wraps_resolvers(schema: Any) -> bool:
    """Return True if an extension wraps resolvers, or may do so because only its factory is known."""
    classes = [each if isinstance(each, type) else type(each) for each in schema.extensions]
    return any(not issubclass(each, SchemaExtension) or each._implements_resolve() for each in classes)
