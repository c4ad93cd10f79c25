"""What an operation may cost: how many objects it can ask for, by its page sizes, before anything is executed.

Small documents can ask for a lot, since nested pages multiply. A field with `first` or `last` counts its selections
that many times, `nodes` as often as it has ids, any other field once; more than the largest page is refused when
it is read. Fragments are counted once and reused, so the
time is linear in the document.
"""

import math
from collections.abc import Mapping
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    InlineFragmentNode,
    IntValueNode,
    ListValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    VariableNode,
)
from graphql.language import ValueNode

from graph.paging import MAX_PAGE

COUNTED_TO = 10**9
SIZES = ("first", "last", "ids")


class Cost:
    """Counts the objects of one validated document's operation, with the values of its variables.

    `sized_by` has the variables that were looked at: with the same sizes, the count is the same.
    """

    def __init__(self, document: DocumentNode, variables: Mapping[str, Any]) -> None:
        self._document = document
        self._variables = variables
        self._fragments = {
            node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)
        }
        self._counted: dict[str, int] = {}
        self.sized_by: set[str] = set()

    def of(self, operation_name: str | None) -> int:
        """Count the objects that an operation can ask for, without what an unknown name would run."""
        counted = 0
        for node in self._document.definitions:
            if isinstance(node, OperationDefinitionNode):
                name = node.name.value if node.name else None
                if operation_name in (None, name):
                    defaults = {d.variable.name.value: d.default_value for d in node.variable_definitions or ()}
                    counted = max(counted, self._selections(node.selection_set, defaults))
        return counted

    def _selections(self, selection_set: SelectionSetNode, defaults: Mapping[str, ValueNode | None]) -> int:
        counted = 0
        for node in selection_set.selections:
            if isinstance(node, FieldNode) and node.selection_set:
                inner = 1 + self._selections(node.selection_set, defaults)
                counted += inner * self._times(node, defaults)
            elif isinstance(node, InlineFragmentNode):
                counted += self._selections(node.selection_set, defaults)
            elif isinstance(node, FragmentSpreadNode):
                name = node.name.value
                if name not in self._counted:
                    self._counted[name] = self._selections(self._fragments[name].selection_set, defaults)
                counted += self._counted[name]
        return min(counted, COUNTED_TO)

    def _times(self, field: FieldNode, defaults: Mapping[str, ValueNode | None]) -> int:
        sizes = [self._size(node.value, defaults) for node in field.arguments or () if node.name.value in SIZES]
        return min(max([1, *sizes]), MAX_PAGE)

    def _size(self, value: ValueNode | None, defaults: Mapping[str, ValueNode | None]) -> int:
        """Read a page size or a list's length; 0 for what is neither, which execution refuses."""
        if isinstance(value, VariableNode):
            name = value.name.value
            self.sized_by.add(name)
            if name not in self._variables:
                return self._size(defaults.get(name), {})
            return size_of(self._variables[name])
        if isinstance(value, IntValueNode):
            return int(value.value)
        return len(value.values) if isinstance(value, ListValueNode) else 0


def size_of(given: object) -> int:
    """Read the size that a variable's value stands for; 0 for what is none."""
    if isinstance(given, float):
        return int(given) if math.isfinite(given) else 0
    return len(given) if isinstance(given, list) else given if isinstance(given, int) else 0


def cost_error(counted: int, allowed: int) -> GraphQLError | None:
    """Make the error of an operation that asks for too much, or None."""
    if counted <= allowed:
        return None
    message = f"The operation asks for up to {counted} objects; {allowed} are allowed. Ask for smaller pages."
    return GraphQLError(message, extensions={"code": "COST_LIMIT"})
