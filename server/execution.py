"""The schema as it is served: what its documents may be and cost, and how operations are answered or streamed."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from inspect import isawaitable
from typing import Any, TypeAlias, cast

import graphql as core
from graphql import DocumentNode, GraphQLError, GraphQLSyntaxError
from graphql.execution import ExecutionResult as CoreResult
from graphql.execution import Executor as CoreExecutor
from graphql.execution import create_source_event_stream, execute_subscription_event
from strawberry import Schema
from strawberry.schema.exceptions import CannotGetOperationTypeError, InvalidOperationTypeError
from strawberry.types import ExecutionResult
from strawberry.types.graphql import OperationType

from executor import Executor, Operation
from resolvers.context import Context
from server.auth import BadToken
from server.caller import SESSION_ENDED, Caller
from server.cost import cost_error
from server.documents import Documents, Prepared
from server.errors import coded

EVERYTHING = frozenset(OperationType)
KINDS = {kind: OperationType(kind.value) for kind in core.OperationType}

Complete: TypeAlias = Callable[[Any], Awaitable[CoreResult]]


class Execution:
    """Executes operations: by `execute` what is answered once, by `stream` what is streamed.

    `executor` runs them breadth first; without it, graphql-core does.
    """

    def __init__(
        self, schema: Schema, *, max_depth: int, max_cost: int, introspection: bool, breadth_first: bool = True
    ) -> None:
        self.schema = schema
        self.executor = Executor(schema._schema, hide_suggestions=not introspection) if breadth_first else None
        forget = self.executor.forget if self.executor else None
        self._documents = Documents(schema._schema, max_depth, introspection=introspection, forget=forget)
        self._max_cost = max_cost
        self._hide_suggestions = not introspection

    async def execute(
        self,
        caller: Caller,
        query: str,
        variables: Mapping[str, Any] | None = None,
        operation_name: str | None = None,
        allowed: Collection[OperationType] = EVERYTHING,
    ) -> ExecutionResult:
        """Execute a query or a mutation; errors are coded.

        A query runs while its session is being checked, in the same round trip, and is answered only if the session
        lives. A mutation waits for the check. Raises CannotGetOperationTypeError if the document has no such operation,
        and InvalidOperationTypeError if it is of a kind that is not allowed.
        """
        operation_name = operation_name or None
        try:
            prepared = self._documents.prepare(query)
        except GraphQLSyntaxError as error:
            return _result(caller, None, [error])
        if errors := self._complaints(prepared, operation_name, variables):
            return _result(caller, None, errors)
        kind = prepared.kind(operation_name)
        if kind is None:
            raise CannotGetOperationTypeError(operation_name)
        if KINDS[kind] not in allowed:
            raise InvalidOperationTypeError(KINDS[kind])
        try:
            return await self._answer(caller, prepared.document, variables, operation_name, kind)
        except Exception as error:
            return _result(caller, None, [_as_graphql(error)])

    async def _answer(
        self,
        caller: Caller,
        document: DocumentNode,
        variables: Mapping[str, Any] | None,
        operation_name: str | None,
        kind: core.OperationType,
    ) -> ExecutionResult:
        checking = caller.ask_session()
        if checking and kind is core.OperationType.MUTATION and not await checking:
            raise BadToken(SESSION_ENDED)
        try:
            result = await self._run(document, caller.context(), variables, operation_name)
        except BaseException:
            if checking:
                checking.cancel()
            raise
        if checking and not await checking:
            raise BadToken(SESSION_ENDED)
        return _result(caller, result.data, result.errors)

    async def _run(
        self,
        document: DocumentNode,
        context: Context,
        variables: Mapping[str, Any] | None,
        operation_name: str | None,
    ) -> CoreResult:
        if self.executor:
            return await self.executor.execute(
                document, context_value=context, variable_values=variables, operation_name=operation_name
            )
        result = core.execute(
            self.schema._schema,
            document,
            context_value=context,
            variable_values=dict(variables or {}),
            operation_name=operation_name,
            hide_suggestions=self._hide_suggestions,
        )
        return await result if isawaitable(result) else result

    def stream(
        self,
        caller: Caller,
        query: str,
        variables: Mapping[str, Any] | None = None,
        operation_name: str | None = None,
        allowed: Collection[OperationType] = EVERYTHING,
    ) -> AsyncGenerator[ExecutionResult, None]:
        """Run an operation; its only result, or each event of a subscription, comes as it is ready, errors coded.

        What keeps it from being executed, or ends it before its time, is the last result: one without data. Raises like
        `execute` on the first step.
        """
        operation_name = operation_name or None
        try:
            prepared = self._documents.prepare(query)
        except GraphQLSyntaxError as error:
            return _once(_result(caller, None, [error]))
        if prepared.kind(operation_name) is not core.OperationType.SUBSCRIPTION:
            return self._alone(caller, query, variables, operation_name, allowed)
        if errors := self._complaints(prepared, operation_name, variables):
            return _once(_result(caller, None, errors))
        return self._subscribe(caller, prepared.document, variables, operation_name)

    async def _alone(self, *asked: Any) -> AsyncGenerator[ExecutionResult, None]:
        yield await self.execute(*asked)

    def _complaints(
        self, prepared: Prepared, operation_name: str | None, variables: Mapping[str, Any] | None
    ) -> list[GraphQLError]:
        """Say what is wrong with a document, with the choice of its operation, or with what that may cost."""
        errors = list(prepared.errors)
        if prepared.operations > 1 and not operation_name:
            errors.append(GraphQLError("The document has several operations: 'operationName' must name one."))
        if not errors:
            error = cost_error(prepared.cost(operation_name, variables or {}), self._max_cost)
            errors += [error] if error else []
        return errors

    async def _subscribe(
        self,
        caller: Caller,
        document: DocumentNode,
        variables: Mapping[str, Any] | None,
        operation_name: str | None,
    ) -> AsyncGenerator[ExecutionResult, None]:
        release = None
        try:
            await caller.check_session()
            release = caller.hold_stream()
            context = caller.context()
            source = CoreExecutor.build(
                self.schema._schema,
                document,
                None,
                context,
                dict(variables or {}),
                operation_name,
                hide_suggestions=self._hide_suggestions,
            )
            events = source if isinstance(source, list) else await _events_of(source)
            if isinstance(events, list) or isinstance(source, list):
                yield _result(caller, None, cast("list[GraphQLError]", events))
                return
            complete = self._completion(source, document, variables, operation_name, context)
            del document, variables, source  # a filter may be large, and the stream may last for days
            async with aclosing(events):
                async for event in events:
                    result = await complete(event)
                    yield _result(caller, result.data, result.errors)
        except Exception as error:
            yield _result(caller, None, [_as_graphql(error)])
        finally:
            if release:
                release()

    def _completion(
        self,
        source: "CoreExecutor[Any]",
        document: DocumentNode,
        variables: Mapping[str, Any] | None,
        operation_name: str | None,
        context: Context,
    ) -> Complete:
        """Give what completes an event of a subscription."""
        operation = self.executor and self.executor.prepare(document, variables, operation_name)
        if isinstance(operation, Operation):
            return partial(operation.run, context_value=context)
        return partial(_complete_alone, source)


def was_executed(result: ExecutionResult) -> bool:
    """Tell whether this comes from executing something, if in vain; else it says why nothing is, or no longer."""
    return result.data is not None or any(error.path for error in result.errors or ())


async def _once(result: ExecutionResult) -> AsyncGenerator[ExecutionResult, None]:
    yield result


async def _events_of(source: "CoreExecutor[Any]") -> AsyncGenerator[Any, None] | list[GraphQLError]:
    """Begin to listen to the events of a subscription; or give the errors of its arguments."""
    stream = create_source_event_stream(source)
    stream = await stream if isawaitable(stream) else stream
    return stream.errors or [] if isinstance(stream, CoreResult) else cast("AsyncGenerator[Any, None]", stream)


async def _complete_alone(source: "CoreExecutor[Any]", event: Any) -> CoreResult:
    """Complete an event by graphql-core."""
    once = source.build_per_event_executor(event)
    once._relevant_sub_fields = {}  # or it would be shared, and grow with every event
    result = execute_subscription_event(once)
    return await result if isawaitable(result) else result


def _result(caller: Caller, data: dict[str, Any] | None, errors: Sequence[GraphQLError] | None) -> ExecutionResult:
    return ExecutionResult(data, coded(errors, caller.request_id) if errors else None)


def _as_graphql(error: Exception) -> GraphQLError:
    return error if isinstance(error, GraphQLError) else GraphQLError(str(error), original_error=error)
