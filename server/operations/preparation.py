"""Preparation of operations: documents are prepared, costs are compared with the limits, and rates are charged."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

import graphql as core
from graphql import DocumentNode, GraphQLError
from strawberry.schema.exceptions import InvalidOperationTypeError
from strawberry.types.graphql import OperationType

from server.errors import RateLimited
from server.operations.caller import Caller
from server.operations.cost import OperationCost, cost_error
from server.operations.documents import DocumentCache, DocumentRefused, PreparedDocument
from server.operations.rates import Meter, preparation_points

ALL_KINDS = frozenset(OperationType)
KINDS = {kind: OperationType(kind.value) for kind in core.OperationType}


@dataclass(frozen=True, slots=True)
class OperationLimits:
    """The limits of one operation: points and response bytes, or those of each event, and seconds.

    `at_once` is the number of operations that one holder may run concurrently while rates are limited.
    """

    points: int = 20_000
    event_points: int = 500
    response: int = 5_000_000
    deadline: timedelta = timedelta(seconds=10)
    at_once: int = 4
    event_response: int = 100_000


class PreparedOperation(NamedTuple):
    """An operation that may be executed. `meter` charges it; None while rates are not limited.

    `preparation` is the number of points for preparing its document; 0 if the document was cached. `name` is None for
    an anonymous operation.
    """

    document: DocumentNode
    kind: core.OperationType | None
    cost: OperationCost
    meter: Meter | None
    preparation: int
    name: str | None


class Preparation:
    """Prepares the operations of requests, and refuses those that cost more than the limits.

    `trusted_names` are the names of the operations in trusted documents.
    """

    def __init__(self, documents: DocumentCache, limits: OperationLimits) -> None:
        self.documents = documents
        self.trusted_names: set[str] = set()
        self._limits = limits

    def pin(self, text: str) -> list[str]:
        """Prepare a trusted document for the life of the process. Return its errors, as sentences."""
        try:
            prepared = self.documents.pin(text)
            self.trusted_names.update(prepared.names)
            for node in prepared.document.definitions:
                if isinstance(node, core.OperationDefinitionNode):
                    smallest = {definition.variable.name.value: 0 for definition in node.variable_definitions or ()}
                    self._check(prepared, node.name.value if node.name else None, smallest)
        except DocumentRefused as refused:
            return [_with_place(error) for error in refused.errors]
        return []

    def prepare(
        self,
        caller: Caller,
        query: str,
        variables: Mapping[str, Any] | None,
        operation_name: str | None,
        allowed: Collection[OperationType],
    ) -> PreparedOperation:
        """Prepare an operation, and its meter. No round trip.

        A refused request is charged for the preparation of its document. Raises DocumentRefused, also if the document
        has no such operation, and InvalidOperationTypeError if the kind of the operation is not allowed.
        """
        meter = caller.start_meter()
        preparation = 0
        try:
            if meter and query not in self.documents:
                preparation = preparation_points(query)
                meter.check(preparation + 1)
            prepared = self.documents.prepare(query)
            cost = self._check(prepared, operation_name, variables or {}, allowed)
        except RateLimited as limited:
            raise DocumentRefused([limited]) from None
        except (DocumentRefused, InvalidOperationTypeError):
            if meter:
                caller.charge_refused_request(meter, preparation_points(query))
            raise
        kind, name = prepared.kind(operation_name), prepared.name(operation_name)
        return PreparedOperation(prepared.document, kind, cost, meter, preparation, name)

    def _check(
        self,
        prepared: PreparedDocument,
        operation_name: str | None,
        variables: Mapping[str, Any],
        allowed: Collection[OperationType] = ALL_KINDS,
    ) -> OperationCost:
        """Return the cost of an operation. Raises DocumentRefused if it exceeds the limits, or if it is not determined.

        Raises InvalidOperationTypeError as `prepare` does.
        """
        kind = prepared.kind(operation_name)
        if kind is None:
            raise DocumentRefused([GraphQLError(_undetermined(prepared, operation_name))])
        if KINDS[kind] not in allowed:
            raise InvalidOperationTypeError(KINDS[kind])
        cost = prepared.cost(operation_name, variables)
        limits = self._limits
        if kind is core.OperationType.SUBSCRIPTION:  # one event may go to a thousand streams of one viewer
            error = cost_error(cost, limits.event_points, min(limits.event_response, limits.response))
        else:
            error = cost_error(cost, limits.points, limits.response)
        if error:
            raise DocumentRefused([error])
        return cost


def _undetermined(prepared: PreparedDocument, operation_name: str | None) -> str:
    """Return why a document has no operation to execute."""
    if operation_name:
        return f'Unknown operation named "{operation_name}".'
    if prepared.operations:
        return "The document has several operations. Name one of them in 'operationName'."
    return "The document has no operation. Send a query, a mutation or a subscription."


def _with_place(error: GraphQLError) -> str:
    place = error.locations[0] if error.locations else None
    return f"{error.message} (line {place.line}, column {place.column})" if place else error.message
