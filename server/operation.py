"""One operation, whatever brought it here: prepared from the kept documents, and allowed by a living session."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

from graphql import DocumentNode, GraphQLError, GraphQLSyntaxError
from strawberry.extensions import SchemaExtension
from strawberry.types import StreamExecutionResult
from strawberry.types.graphql import OperationType

from graph import Graph
from resolvers.context import Context, Viewer
from server.auth import BadToken, Tokens
from server.cost import Cost, cost_error
from server.errors import coded
from server.limits import MAX_TOKENS, Documents, Prepared


@dataclass(slots=True)
class Caller:
    """Who sent a request or opened a socket, and to what. A socket's viewer is known from its first message on."""

    graph: Graph
    tokens: Tokens
    request_id: str
    viewer: Viewer | None = None
    authorization: str | None = None
    connection_params: dict[str, Any] | None = None

    async def check_session(self) -> None:
        """Raise BadToken if the viewer's session has ended. One round trip, shared with other reads of its tick."""
        viewer = self.viewer
        if viewer and not await self.graph.sessions.is_live(viewer.user, viewer.session):
            raise BadToken("The session has ended: log in again.")


class Operation(SchemaExtension):
    """Prepares an operation and gives it a context of its own, then codes the errors of what it streams.

    A query runs while its session is being checked, in the same round trip, and is answered only if the session
    lives. Mutations and subscriptions wait for the check.
    """

    def __init__(self, documents: Documents, max_cost: int) -> None:
        self._documents = documents
        self._max_cost = max_cost
        self._prepared: Prepared | None = None

    def on_parse(self) -> Iterator[None]:
        """Take the document from those kept; the library parses again what has a syntax error, to report it."""
        execution = self.execution_context
        self._caller: Caller = execution.context
        execution.parse_options = {"max_tokens": MAX_TOKENS}
        try:
            self._prepared = self._documents.prepare(execution.query or "")
            execution.graphql_document = self._prepared.document
        except GraphQLSyntaxError:
            self._prepared = None
        yield

    def on_validate(self) -> Iterator[None]:
        """Report what is wrong with the document, or with the choice of an operation."""
        if self._prepared:
            errors = list(self._prepared.errors)
            if self._prepared.operations > 1 and not self.execution_context._provided_operation_name:
                errors.append(GraphQLError("The document has several operations: 'operationName' must name one."))
            if not errors and (error := self._cost_error(self._prepared.document)):
                errors.append(error)
            self.execution_context.pre_execution_errors = errors
        yield

    def _cost_error(self, document: DocumentNode) -> GraphQLError | None:
        """Refuse what asks for too much, before anything is executed."""
        cost = Cost(document, self.execution_context.variables or {})
        return cost_error(cost.of(self.execution_context._provided_operation_name), self._max_cost)

    async def on_execute(self) -> AsyncIterator[None]:
        """Check the session beside a query, or before anything else."""
        caller, drained, check = self._caller, None, None
        if self.execution_context.operation_type is not OperationType.QUERY:
            await caller.check_session()
        elif caller.viewer:
            check = asyncio.create_task(caller.check_session())
            drained = asyncio.create_task(caller.graph.log.drained())
            drained.add_done_callback(_retrieve)
        self.execution_context.context = Context(caller.graph, caller.viewer, caller.tokens.issue, drained)
        try:
            yield
        finally:
            if check:
                await check

    def on_stream_result(self, result: StreamExecutionResult) -> Iterator[None]:
        """Code the errors of an event, or of what came instead of the first."""
        if errors := getattr(result, "errors", None):
            result.errors = coded(errors, self._caller.request_id)  # type: ignore[union-attr] # it has errors
        yield


def _retrieve(task: asyncio.Task[int]) -> None:
    """Look at the outcome of a task that maybe nobody waits for."""
    if not task.cancelled():
        task.exception()
