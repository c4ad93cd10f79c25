"""The GraphQL features that generated cases cover, so that a generator that misses one is noticed."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from graphql import (
    ExecutionResult,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    OperationDefinitionNode,
    OperationType,
    Visitor,
    visit,
)

from tests.executor.differential.comparison import Case

EXPECTED = frozenset(
    {
        "a fragment in a fragment",
        "a fragment used twice",
        "a mutation",
        "a request error",
        "a skipped or included node",
        "a variable",
        "all data nulled",
        "an abstract type",
        "an alias",
        "an error at a list item",
        "an error at an argument",
        "an error with data",
        "an error under a nulled parent",
        "an inline fragment",
        "merged keys",
        "no error",
        "several errors",
        "several operations",
    }
)


def features_of(case: Case, result: ExecutionResult) -> Counter[str]:
    """Return the features of a case, from its document and graphql-core's result."""
    counted = Counter(set(_of_document(case)))
    counted.update(set(_of_result(result)))
    counted.update(f"resolved by {plan.realisation}" for plan in case.generated.layout.plans.values())
    return counted


class _Reader(Visitor):
    """Records the features of a document."""

    def __init__(self, abstract: set[str]) -> None:
        super().__init__()
        self.found: list[str] = []
        self._abstract = abstract
        self._spread: set[str] = set()

    def enter_field(self, node: FieldNode, *_: Any) -> None:
        """Record a field."""
        if node.alias:
            self.found.append("an alias")
        self._directives(node)
        if node.selection_set:
            selections = node.selection_set.selections
            keys = [(each.alias or each.name).value for each in selections if isinstance(each, FieldNode)]
            if len(keys) != len(set(keys)):
                self.found.append("merged keys")

    def enter_fragment_spread(self, node: FragmentSpreadNode, *_: Any) -> None:
        """Record a fragment spread."""
        self.found += ["a fragment used twice"] if node.name.value in self._spread else []
        self._spread.add(node.name.value)
        self._directives(node)

    def enter_inline_fragment(self, node: InlineFragmentNode, *_: Any) -> None:
        """Record an inline fragment."""
        self.found.append("an inline fragment")
        if node.type_condition and node.type_condition.name.value in self._abstract:
            self.found.append("an abstract type")
        self._directives(node)

    def enter_fragment_definition(self, node: FragmentDefinitionNode, *_: Any) -> None:
        """Record a fragment and nested fragments."""
        self.found += ["an abstract type"] if node.type_condition.name.value in self._abstract else []
        if any(isinstance(each, FragmentSpreadNode) for each in node.selection_set.selections):
            self.found.append("a fragment in a fragment")

    def enter_variable(self, *_: Any) -> None:
        """Record a variable."""
        self.found.append("a variable")

    def enter_operation_definition(self, node: OperationDefinitionNode, *_: Any) -> None:
        """Record a mutation."""
        self.found += ["a mutation"] if node.operation is OperationType.MUTATION else []

    def _directives(self, node: FieldNode | FragmentSpreadNode | InlineFragmentNode) -> None:
        self.found += ["a skipped or included node"] if node.directives else []


def _of_document(case: Case) -> Iterator[str]:
    reader = _Reader(set(case.generated.layout.members))
    visit(case.parsed, reader)
    yield from reader.found
    if sum(isinstance(each, OperationDefinitionNode) for each in case.parsed.definitions) > 1:
        yield "several operations"


def _of_result(result: ExecutionResult) -> Iterator[str]:
    errors = result.errors or []
    yield "several errors" if len(errors) > 1 else "one error" if errors else "no error"
    if errors and result.data is not None:
        yield "an error with data"
    if result.data is None:
        yield "all data nulled" if any(error.path for error in errors) else "a request error"
    for error in errors:
        if error.path and isinstance(error.path[-1], int):
            yield "an error at a list item"
        if error.path and _nulled_above(result.data, error.path):
            yield "an error under a nulled parent"
        if error.path and error.message.startswith("Argument "):
            yield "an error at an argument"


def _nulled_above(data: Any, path: list[str | int]) -> bool:
    for step in path[:-1]:
        try:
            data = data[step]
        except (TypeError, LookupError):
            return True
    return data is None
