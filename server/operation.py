"""One operation, whatever brought it here: prepared from the kept documents, and allowed by a living session."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from graphql import GraphQLError, GraphQLSyntaxError
from strawberry.extensions import SchemaExtension
from strawberry.types.graphql import OperationType

from graph import Graph
from resolvers.context import Context, Viewer
from server.auth import BadToken, Tokens
from server.cost import Cost, cost_error
from server.errors import RATE_LIMITED
from server.limits import MAX_TOKENS, Documents, Prepared
from server.quotas import Quota, QuotaExceeded, holder_of


@dataclass(slots=True)
class Resumption:
    """Where an event stream is to go on, as its client says, and, once it runs, where it is, as its context says."""

    after: str | None
    context: Context | None = None

    @property
    def position(self) -> str | None:
        """The cursor of the event that was streamed last, if it has one."""
        return None if self.context is None else self.context.position


@dataclass(slots=True)
class Caller:
    """Who sent a request or opened a socket, and to what. A socket's viewer is known from its first message on.

    `sockets` and `streams` count what callers hold open; `resumption` is only for event streams.
    """

    graph: Graph
    tokens: Tokens
    sockets: Quota
    streams: Quota
    request_id: str
    address: str
    viewer: Viewer | None = None
    authorization: str | None = None
    resumption: Resumption | None = None

    @property
    def holder(self) -> int | str:
        """Whose quota counts: the viewer's, or the address's if anonymous."""
        return self.viewer.user if self.viewer else holder_of(self.address)

    async def check_session(self) -> None:
        """Raise BadToken if the viewer's session has ended. One round trip, shared with other reads of its tick."""
        viewer = self.viewer
        if viewer and not await self.graph.sessions.is_live(viewer.user, viewer.session):
            raise BadToken("The session has ended: log in again.")

    def watch_session(self, on_end: Callable[[], None]) -> Callable[[], None]:
        """Call `on_end` as soon as the viewer's session has ended. Returns what stops watching."""
        viewer = self.viewer
        return self.graph.feed.watch(viewer.user, viewer.session, on_end) if viewer else _nothing

    def hold_stream(self) -> Callable[[], None]:
        """Count a live subscription in. Returns what counts it out. Raises GraphQLError if there are too many."""
        try:
            return self.streams.hold(self.holder)
        except QuotaExceeded:
            message = f"You have {self.streams.most} live subscriptions, as many as one may: end one first."
            raise GraphQLError(message, extensions={"code": RATE_LIMITED}) from None

    def context(self, drained: asyncio.Task[int] | None = None) -> Context:
        """Make the context of an operation."""
        resumption = self.resumption
        after = resumption.after if resumption else None
        context = Context(self.graph, self.viewer, self.tokens.issue, drained, resume_after=after)
        if resumption:
            resumption.context = context
        return context


class Operation(SchemaExtension):
    """Prepares an operation and gives it a context of its own.

    A query runs while its session is being checked, in the same round trip, and is answered only if the session
    lives. A mutation waits for the check.
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
            execution = self.execution_context
            execution.pre_execution_errors = complaints(
                self._prepared, execution._provided_operation_name, execution.variables, self._max_cost
            )
        yield

    async def on_execute(self) -> AsyncIterator[None]:
        """Check the session beside a query, or before anything else."""
        caller, drained, check = self._caller, None, None
        if self.execution_context.operation_type is not OperationType.QUERY:
            await caller.check_session()
        elif caller.viewer:
            check = asyncio.create_task(caller.check_session())
            drained = asyncio.create_task(caller.graph.log.drained())
            drained.add_done_callback(_retrieve)
        self.execution_context.context = caller.context(drained)
        try:
            yield
        finally:
            if check:
                await check


def complaints(
    prepared: Prepared, operation_name: str | None, variables: Mapping[str, Any] | None, max_cost: int
) -> list[GraphQLError]:
    """Say what is wrong with a document, with the choice of its operation, or with what that may cost."""
    errors = list(prepared.errors)
    if prepared.operations > 1 and not operation_name:
        errors.append(GraphQLError("The document has several operations: 'operationName' must name one."))
    if not errors:
        error = cost_error(Cost(prepared.document, variables or {}).of(operation_name), max_cost)
        errors += [error] if error else []
    return errors


def _retrieve(task: asyncio.Task[int]) -> None:
    """Look at the outcome of a task that maybe nobody waits for."""
    if not task.cancelled():
        task.exception()


def _nothing() -> None:
    """Stop watching nobody."""
