"""The hook for Strawberry: `strawberry.Schema(query=Query, extensions=[BreadthFirst])`."""

from collections.abc import AsyncIterator
from typing import Any
from weakref import WeakKeyDictionary

from strawberry.extensions import SchemaExtension
from strawberry.types.graphql import OperationType

from executor.execution import Executor

_executors: "WeakKeyDictionary[Any, Executor]" = WeakKeyDictionary()


def executor_of(schema: Any) -> Executor:
    """Give the executor of a Strawberry schema, always the same one."""
    executor = _executors.get(schema)
    if executor is None:
        executor = _executors[schema] = Executor(schema._schema)
    return executor


class BreadthFirst(SchemaExtension):
    """Executes queries and mutations breadth first.

    Where another extension of the schema hooks into resolving, everything is left to ordinary execution, so that
    nothing passes it by. Parsed documents should be kept (Strawberry's `ParserCache`), or each is planned anew.
    """

    async def on_execute(self) -> AsyncIterator[None]:
        """Set the result, which keeps ordinary execution from running."""
        execution = self.execution_context
        document, hooked = execution.graphql_document, _hooked(execution.schema)
        if document is not None and not hooked and execution.operation_type is not OperationType.SUBSCRIPTION:
            execution.result = await executor_of(execution.schema).execute(
                document,
                root_value=execution.root_value,
                context_value=execution.context,
                variable_values=execution.variables,
                operation_name=execution.operation_name,
            )
        yield


def _hooked(schema: Any) -> bool:
    """Tell whether an extension hooks into resolving, or may: what a factory makes is not known."""
    classes = [each if isinstance(each, type) else type(each) for each in schema.extensions]
    return any(not issubclass(each, SchemaExtension) or each._implements_resolve() for each in classes)
