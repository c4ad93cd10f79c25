"""Prepared documents: valid, with the kinds of their operations and what these cost."""

from collections.abc import Hashable, Mapping
from typing import Any

from graphql import DocumentNode, OperationDefinitionNode, OperationType

from server.operations.cost import Cost, Demand, size_of
from server.operations.weights import Weights

KEPT_DEMANDS = 100  # of one document, by the sizes that its variables ask for


class PreparedDocument:
    """A valid document, the kinds of its operations, and what these may take."""

    def __init__(self, document: DocumentNode, weights: Weights) -> None:
        self.document = document
        operations = [node for node in document.definitions if isinstance(node, OperationDefinitionNode)]
        self.operations = len(operations)
        self._kinds = {node.name.value if node.name else None: node.operation for node in operations}
        self._weights = weights
        self._sized_by: frozenset[str] = frozenset()
        self._demands: dict[Hashable, Demand] = {}

    def kind(self, operation_name: str | None) -> OperationType | None:
        """Return the kind of the operation that a request runs; None if the document has no such operation."""
        if not operation_name and self.operations == 1:
            return next(iter(self._kinds.values()))
        return self._kinds.get(operation_name)

    def demand(self, operation_name: str | None, variables: Mapping[str, Any]) -> Demand:
        """Return what an operation may take at most. It is looked up for page sizes that were met before."""
        sizes = tuple((name, size_of(variables[name])) for name in self._sized_by if name in variables)
        known = self._demands.get((operation_name, sizes))
        if known is not None:
            return known
        cost = Cost(self._weights, self.document, variables)
        demand = cost.of(operation_name)
        if not cost.sized_by <= self._sized_by or len(self._demands) >= KEPT_DEMANDS:
            self._sized_by |= cost.sized_by
            self._demands.clear()
        sizes = tuple((name, size_of(variables[name])) for name in self._sized_by if name in variables)
        self._demands[(operation_name, sizes)] = demand
        return demand
