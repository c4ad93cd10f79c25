"""The arguments of a field: coerced once if they are constant, otherwise once per run."""

from collections.abc import Callable, Mapping
from typing import Any

from graphql import FieldNode, GraphQLField, VariableNode
from graphql.execution.values import VariableValues, get_argument_values

from .document_info import nodes_of
from .fields import given
from .plan import Run

NO_VARIABLES = VariableValues({}, {})
NO_ARGUMENTS: dict[str, Any] = {}

Convert = Callable[[dict[str, Any]], Mapping[str, Any]]


class Arguments:
    """The keyword arguments of a resolver. All calls share the argument values, so resolvers must not modify them."""

    def __init__(
        self, definition: GraphQLField, node: FieldNode, convert: Convert | None, *, hide_suggestions: bool
    ) -> None:
        self._definition = definition
        self._node = node
        self._convert = convert
        self._hide_suggestions = hide_suggestions
        self._constant: Mapping[str, Any] | None = None
        if not definition.args:
            self._constant = NO_ARGUMENTS
        elif not any(isinstance(part, VariableNode) for each in node.arguments or () for part in nodes_of(each)):
            self._constant = self._try_constants()

    def of(self, run: Run) -> Mapping[str, Any]:
        """Return the arguments for a run. Raises GraphQLError if a value cannot be coerced."""
        if self._constant is not None:
            return self._constant
        known = run.arguments.get(self)
        if known is None:
            known = run.arguments[self] = self._coerce(run.variables)
        return known

    def _coerce(self, variables: VariableValues) -> Mapping[str, Any]:
        values = get_argument_values(self._definition, self._node, variables, hide_suggestions=self._hide_suggestions)
        return values if self._convert is None else given(self._convert(values))

    def _try_constants(self) -> Mapping[str, Any] | None:
        try:
            return self._coerce(NO_VARIABLES)
        except Exception:
            return None  # each run coerces them again, and reports the error
