"""Execution of a document with both executors, and the differences between the results."""

import asyncio
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphql import (
    DirectiveNode,
    DocumentNode,
    ExecutionResult,
    GraphQLError,
    OperationDefinitionNode,
    VariableNode,
    Visitor,
    execute,
    visit,
)

from executor import Executor
from tests.executor.differential.answers import World
from tests.executor.differential.documents import GeneratedDocument
from tests.executor.differential.schemas import GeneratedSchema
from tests.executor.differential.things import Identity


@dataclass(frozen=True)
class Case:
    """A generated schema, a document, and the seed of the data."""

    generated: GeneratedSchema
    document: GeneratedDocument
    parsed: DocumentNode
    salt: int

    def __str__(self) -> str:
        document = self.document
        return (
            f"{self.generated}\n# --- document, operation {document.operation_name}, "
            f"variables {document.variables!r}, salt {self.salt}\n{document.text}\n"
        )

    @property
    def may_fall_back(self) -> bool:
        """Return True if the operation may fall back: it is ambiguous, or a condition is null."""
        return not self._names_an_operation or self._has_null_condition

    @property
    def _has_null_condition(self) -> bool:
        conditions = _Conditions()
        visit(self.parsed, conditions)
        return any(
            name in self.document.variables and self.document.variables[name] is None for name in conditions.found
        )

    @property
    def _names_an_operation(self) -> bool:
        operations = [each for each in self.parsed.definitions if isinstance(each, OperationDefinitionNode)]
        name = self.document.operation_name
        if name is None:
            return len(operations) == 1
        return any(each.name and each.name.value == name for each in operations)

    def run_by_graphql_core(self) -> ExecutionResult:
        """Return graphql-core's result with synchronous resolvers, which is deterministic."""
        result = execute(self.generated.schema, self.parsed, **self._options(live=False))
        assert isinstance(result, ExecutionResult), "a resolver is asynchronous"
        return result

    async def run_by(self, executor: Executor) -> ExecutionResult:
        """Return the executor's result, with batch resolvers, and asynchronous ones unless the case may fall back.

        With asynchronous resolvers, the order of graphql-core's errors depends on timing.
        """
        return await executor.execute(self.parsed, **self._options(live=not self.may_fall_back))

    def _options(self, *, live: bool) -> dict[str, Any]:
        world = World(self.salt, self.generated.layout, live=live)
        return {
            "root_value": world.thing(Identity("Query", 0, "Query")),
            "context_value": world,
            "variable_values": self.document.variables,
            "operation_name": self.document.operation_name,
        }


class _Conditions(Visitor):
    """Collects the variables of `@skip` and `@include`."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def enter_directive(self, node: DirectiveNode, *_: Any) -> None:
        """Record a condition."""
        values = [argument.value for argument in node.arguments or ()]
        self.found |= {value.name.value for value in values if isinstance(value, VariableNode)}


def differences(expected: ExecutionResult, actual: ExecutionResult) -> list[str]:
    """Return all differences: in data, the order of keys, and errors with their order and attributes."""
    found = list(_unlike(expected.data, actual.data, "data"))
    expected_errors, actual_errors = expected.errors, actual.errors
    if (expected_errors is None) != (actual_errors is None):
        found.append(f"errors: {shown(expected_errors)} became {shown(actual_errors)}")
    pairs = zip(expected_errors or (), actual_errors or (), strict=False)
    for index, (one, other) in enumerate(pairs):
        found += [f"errors[{index}].{line}" for line in _errors_unlike(one, other)]
    if len(expected_errors or ()) != len(actual_errors or ()):
        found.append(f"errors: {shown(expected_errors)}\n   became {shown(actual_errors)}")
    return found


def shown(errors: Sequence[GraphQLError] | None) -> str:
    """Return errors as text, one per line."""
    return str(errors) if errors is None else "".join(f"\n    {error.path}: {error.message}" for error in errors)


def _errors_unlike(expected: GraphQLError, actual: GraphQLError) -> Iterator[str]:
    for name in ("message", "path", "locations", "extensions"):
        one, other = getattr(expected, name), getattr(actual, name)
        if one != other:
            yield f"{name}: {one!r} became {other!r}"
    one_type, other_type = type(expected.original_error), type(actual.original_error)
    if one_type is not other_type:
        yield f"original_error: {one_type.__name__} became {other_type.__name__}"
    if str(expected.original_error) != str(actual.original_error):
        yield f"original_error: {expected.original_error} became {actual.original_error}"


def _unlike(expected: Any, actual: Any, place: str) -> Iterator[str]:
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        if list(expected) != list(actual):
            yield f"{place}: keys {list(expected)} became {list(actual)}"
        for key in expected.keys() & actual.keys():
            yield from _unlike(expected[key], actual[key], f"{place}.{key}")
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
            yield from _unlike(one, other, f"{place}[{index}]")
    elif type(expected) is not type(actual) or not (expected == actual or (isnan(expected) and isnan(actual))):
        yield f"{place}: {expected!r} became {actual!r}"


def isnan(value: Any) -> bool:
    """Return True if a value is NaN, which does not equal itself."""
    return isinstance(value, float) and math.isnan(value)


class Leftovers:
    """Watches an event loop for tasks and unretrieved exceptions that executions leave behind."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._before = asyncio.all_tasks()
        self._complaints: list[str] = []
        self._loop.set_exception_handler(lambda _, context: self._complaints.append(str(context)))

    def behind(self) -> list[str]:
        """Return the tasks and exceptions that were not there at the beginning."""
        tasks = [repr(task) for task in asyncio.all_tasks() - self._before]
        return tasks + self._complaints
