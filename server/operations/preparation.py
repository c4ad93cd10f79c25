"""Which operations may run: documents prepared, demands compared with the limits, meters begun."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import graphql as core
from graphql import DocumentNode, GraphQLError
from strawberry.schema.exceptions import CannotGetOperationTypeError, InvalidOperationTypeError
from strawberry.types.graphql import OperationType

from server.errors import RateLimited
from server.operations.caller import Caller
from server.operations.cost import Demand, refusal
from server.operations.document_checks import DocumentRefused
from server.operations.documents import DocumentCache
from server.operations.prepared_document import PreparedDocument
from server.operations.rates import Meter, preparation_of

EVERYTHING = frozenset(OperationType)
KINDS = {kind: OperationType(kind.value) for kind in core.OperationType}


@dataclass(frozen=True, slots=True)
class OperationLimits:
    """What one operation may take: points and bytes of its data, or of each event's, and the time until its answer.

    `at_once` is how many operations of one holder run at once while rates are limited.
    """

    points: int = 20_000
    event_points: int = 500
    response: int = 5_000_000
    deadline: timedelta = timedelta(seconds=10)
    at_once: int = 4
    event_response: int = 100_000


@dataclass(frozen=True, slots=True)
class Ready:
    """An operation that may run: its document, what it demands, and the meter that charges it, if rates are limited.

    `preparation` are the points for the document, if it was new.
    """

    document: DocumentNode
    kind: core.OperationType | None
    demand: Demand
    meter: Meter | None
    preparation: int


class Preparation:
    """Prepares the operations of requests, and refuses those that demand more than the limits."""

    def __init__(self, documents: DocumentCache, limits: OperationLimits) -> None:
        self.documents = documents
        self._limits = limits

    def pin(self, text: str) -> list[str]:
        """Prepare a trusted document for the life of the process. Returns what is wrong with it, as sentences."""
        try:
            prepared = self.documents.pin(text)
            for node in prepared.document.definitions:
                if isinstance(node, core.OperationDefinitionNode):
                    least = {definition.variable.name.value: 0 for definition in node.variable_definitions or ()}
                    self._check(prepared, node.name.value if node.name else None, least)
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
    ) -> Ready:
        """Prepare a document and begin to meter its operation. No round trip.

        Whatever is refused is charged for its preparation. Raises DocumentRefused; CannotGetOperationTypeError if the
        document has no such operation, and InvalidOperationTypeError if it is of a kind that is not allowed.
        """
        meter = caller.begin()
        preparation = 0
        try:
            if meter and not self.documents.knows(query):
                preparation = preparation_of(query)
                meter.admit(preparation + 1)
            prepared = self.documents.prepare(query)
            demand = self._check(prepared, operation_name, variables or {}, allowed)
        except RateLimited as limited:
            raise DocumentRefused([limited]) from None
        except (DocumentRefused, CannotGetOperationTypeError, InvalidOperationTypeError):
            if meter:
                caller.charge_refusal(meter, preparation_of(query))
            raise
        return Ready(prepared.document, prepared.kind(operation_name), demand, meter, preparation)

    def _check(
        self,
        prepared: PreparedDocument,
        operation_name: str | None,
        variables: Mapping[str, Any],
        allowed: Collection[OperationType] = EVERYTHING,
    ) -> Demand:
        """Return what an operation demands. Raises DocumentRefused if that is too much, or if none is chosen.

        Raises CannotGetOperationTypeError and InvalidOperationTypeError as `prepare` does.
        """
        if prepared.operations > 1 and not operation_name:
            message = "The document has several operations: 'operationName' must name one."
            raise DocumentRefused([GraphQLError(message)])
        kind = prepared.kind(operation_name)
        if kind is None:
            raise CannotGetOperationTypeError(operation_name)
        if KINDS[kind] not in allowed:
            raise InvalidOperationTypeError(KINDS[kind])
        demand = prepared.demand(operation_name, variables)
        limits = self._limits
        if kind is core.OperationType.SUBSCRIPTION:  # one event may go to a thousand streams of one viewer
            error = refusal(demand, limits.event_points, min(limits.event_response, limits.response))
        else:
            error = refusal(demand, limits.points, limits.response)
        if error:
            raise DocumentRefused([error])
        return demand


def _with_place(error: GraphQLError) -> str:
    place = error.locations[0] if error.locations else None
    return f"{error.message} (line {place.line}, column {place.column})" if place else error.message
