"""The arguments of a field: coerced once if they are constant, else once for each run."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from graphql import FieldNode, GraphQLField, VariableNode
from graphql.execution.values import VariableValues, get_argument_values

from executor.fields import given
from executor.survey import nodes_of

if TYPE_CHECKING:
    from executor.run import Run

NO_VARIABLES = VariableValues({}, {})
NONE: dict[str, Any] = {}

Convert = Callable[[dict[str, Any]], Mapping[str, Any]]


class Arguments:
    """Gives the keyword arguments of a resolver; values are shared by all its calls, so it must not change them."""

    def __init__(
        self, definition: GraphQLField, node: FieldNode, convert: Convert | None, *, hide_suggestions: bool
    ) -> None:
        self._definition = definition
        self._node = node
        self._convert = convert
        self._hide_suggestions = hide_suggestions
        self._constant: Mapping[str, Any] | None = None
        if not definition.args:
            self._constant = NONE
        elif not any(isinstance(part, VariableNode) for part in nodes_of(node)):
            self._constant = self._try(NO_VARIABLES)

    def of(self, run: "Run") -> Mapping[str, Any]:
        """Give the arguments of a run. Raises GraphQLError for what cannot be coerced."""
        if self._constant is not None:
            return self._constant
        known = run.arguments.get(self)
        if known is None:
            known = run.arguments[self] = self._read(run.variables)
        return known

    def _read(self, variables: VariableValues) -> Mapping[str, Any]:
        values = get_argument_values(self._definition, self._node, variables, hide_suggestions=self._hide_suggestions)
        return values if self._convert is None else given(self._convert(values))

    def _try(self, variables: VariableValues) -> Mapping[str, Any] | None:
        """Coerce constants; what fails is left to the run, which reports it."""
        try:
            return self._read(variables)
        except Exception:
            return None
