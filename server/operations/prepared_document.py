"""Prepared documents: valid, with the kinds and costs of their operations."""

from collections.abc import Hashable, Mapping
from typing import Any

from graphql import DocumentNode, OperationDefinitionNode, OperationType

from server.operations.cost import CostAnalysis, OperationCost, size_of
from server.operations.weights import Weights

CACHED_COSTS = 100  # of one document, by operation and page sizes
CHARACTERS_PER_TOKEN = 500  # of a text, which take as much memory as a token
OVERHEAD = 20  # tokens, for the memory of the smallest document


class PreparedDocument:
    """A valid document.

    `size` is its memory in tokens, including that of a long text; `operations` is the number of its operations.
    """

    def __init__(self, text: str, document: DocumentNode, weights: Weights) -> None:
        self.document = document
        self.size = int(getattr(document, "token_count", 0)) + len(text) // CHARACTERS_PER_TOKEN + OVERHEAD
        operations = [node for node in document.definitions if isinstance(node, OperationDefinitionNode)]
        self.operations = len(operations)
        self._kinds = {node.name.value if node.name else None: node.operation for node in operations}
        self._weights = weights
        self._sized_by: frozenset[str] = frozenset()
        self._costs: dict[Hashable, OperationCost] = {}  # not of cachetools: this is cleared whenever its keys change

    def kind(self, operation_name: str | None) -> OperationType | None:
        """Return the kind of the operation that a request executes; None if the document has no such operation."""
        if not operation_name and self.operations == 1:
            return next(iter(self._kinds.values()))
        return self._kinds.get(operation_name)

    def name(self, operation_name: str | None) -> str | None:
        """Return the name of the operation that a request executes; None if it has none."""
        return next(iter(self._kinds)) if not operation_name and self.operations == 1 else operation_name

    @property
    def names(self) -> list[str]:
        """The names of the operations that have one."""
        return [name for name in self._kinds if name]

    def cost(self, operation_name: str | None, variables: Mapping[str, Any]) -> OperationCost:
        """Return the maximum cost of an operation. O(1) for page sizes that were requested before, else O(fields)."""
        known = self._costs.get((operation_name, self._sizes(variables)))
        if known is not None:
            return known
        analysis = CostAnalysis(self._weights, self.document, variables)
        cost = analysis.of(operation_name)
        if not analysis.sized_by <= self._sized_by or len(self._costs) >= CACHED_COSTS:
            self._sized_by |= analysis.sized_by
            self._costs.clear()
        self._costs[operation_name, self._sizes(variables)] = cost
        return cost

    def _sizes(self, variables: Mapping[str, Any]) -> Hashable:
        return tuple([(name, size_of(variables[name])) for name in self._sized_by if name in variables])
