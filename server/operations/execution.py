"""The schema as it is served: how operations that may run are answered or streamed."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable
from typing import Any, TypeAlias, cast

import graphql as core
from graphql import DocumentNode, GraphQLError
from graphql.execution import ExecutionResult as CoreResult
from graphql.execution import Executor as CoreExecutor
from graphql.execution import create_source_event_stream, execute_subscription_event
from starlette.requests import ClientDisconnect
from strawberry import Schema
from strawberry.types import ExecutionResult
from strawberry.types.graphql import OperationType

from executor import Executor, Operation
from graph.feed.updates import HomeUpdate, StreamUpdate
from resolvers.context import Context
from server.auth import BadToken
from server.errors import DEADLINE_EXCEEDED, MAX_ERRORS, RateLimited, coded
from server.operations.caller import SESSION_ENDED, Caller
from server.operations.disconnects import cancel_on_disconnect
from server.operations.document_checks import DocumentRefused
from server.operations.document_size import DocumentLimits
from server.operations.documents import DocumentCache
from server.operations.preparation import EVERYTHING, OperationLimits, Preparation, Ready
from server.operations.rates import SUBSCRIPTION, Meter
from server.operations.turns import Turns

Update: TypeAlias = HomeUpdate | StreamUpdate
Complete: TypeAlias = Callable[[Any], Awaitable[CoreResult]]


@dataclass(frozen=True, slots=True)
class StreamedResult:
    """A result of an operation that is streamed; `number` is that of the log entry whose event it completes."""

    result: ExecutionResult
    number: int | None = None


class Execution:
    """Executes operations: by `execute` what is answered once, by `stream` what is streamed.

    `executor` runs them breadth first; without it, graphql-core does.
    """

    def __init__(
        self,
        schema: Schema,
        documents: DocumentLimits,
        limits: OperationLimits,
        *,
        introspection: bool,
        locations: bool = True,
        breadth_first: bool = True,
    ) -> None:
        self.schema = schema
        self.limits = limits
        self.executor = (
            Executor(schema._schema, hide_suggestions=not introspection, max_errors=MAX_ERRORS)
            if breadth_first
            else None
        )
        forget = self.executor.forget if self.executor else None
        kept = DocumentCache(schema._schema, documents, introspection=introspection, locations=locations, forget=forget)
        self.preparation = Preparation(kept, limits)
        self._deadline = limits.deadline.total_seconds()
        self._turns = Turns(limits.at_once)
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

        A query runs while its session is being checked and its rates are charged, in the same round trip, and is
        answered only if the session lives and no rate is used up. A mutation waits for both. Raises
        CannotGetOperationTypeError if the document has no such operation, and InvalidOperationTypeError if it is of a
        kind that is not allowed.
        """
        operation_name = operation_name or None
        try:
            ready = self.preparation.prepare(caller, query, variables, operation_name, allowed)
        except DocumentRefused as refused:
            return _result(caller, None, refused.errors)
        return await self._execute(caller, ready, variables, operation_name)

    async def _execute(
        self, caller: Caller, ready: Ready, variables: Mapping[str, Any] | None, operation_name: str | None
    ) -> ExecutionResult:
        try:
            async with asyncio.timeout(self._deadline) as deadline:
                answering = self._answer(caller, ready, variables, operation_name)
                if ready.demand.hashes and caller.receive:
                    return await cancel_on_disconnect(answering, caller.receive)
                return await answering
        except ClientDisconnect:
            raise
        except TimeoutError as error:
            return _result(caller, None, [self._too_late() if deadline.expired() else _as_graphql(error)])
        except Exception as error:
            return _result(caller, None, [_as_graphql(error)])

    async def _answer(
        self, caller: Caller, ready: Ready, variables: Mapping[str, Any] | None, operation_name: str | None
    ) -> ExecutionResult:
        meter = ready.meter
        if meter and not self._turns.try_acquire(meter.holder):
            await self._wait_for_turn(caller, meter, ready.preparation)
        checking = None
        try:
            if meter:
                meter.charge(ready.demand, ready.preparation)
            checking = caller.ask_session()
            if ready.kind is core.OperationType.MUTATION:
                await _admit(checking, meter)
                context = caller.context(meter)
                result = await self._run(ready.document, context, variables, operation_name)
                if meter:
                    await meter.give_back_sign_ups(ready.demand.sign_ups - context.users_created)
            else:
                result = await self._run(ready.document, caller.context(meter), variables, operation_name)
                await _admit(checking, meter)
        except BaseException:
            if checking:
                checking.cancel()
            if meter:
                meter.forget()
            raise
        finally:
            if meter:
                self._turns.release(meter.holder)
        return _result(caller, result.data, result.errors)

    async def _wait_for_turn(self, caller: Caller, meter: Meter, preparation: int) -> None:
        """Wait for a turn. An operation that never gets one is charged for the preparation of its document."""
        try:
            await self._turns.acquire(meter.holder)
        except BaseException as error:
            if preparation:
                caller.charge_refusal(meter, preparation)
            if isinstance(error, RateLimited):
                meter.record(error)
            raise

    def _too_late(self) -> GraphQLError:
        message = (
            f"The operation took longer than {self._deadline:g} seconds and was ended. "
            "Of a mutation, the changes may have been made or not."
        )
        return GraphQLError(message, extensions={"code": DEADLINE_EXCEEDED})

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
    ) -> AsyncGenerator[StreamedResult, None]:
        """Run an operation; its only result, or each event of a subscription, comes as it is ready, errors coded.

        What keeps it from being executed, or ends it before its time, is the last result: one without data. Raises like
        `execute`, at once.
        """
        operation_name = operation_name or None
        try:
            ready = self.preparation.prepare(caller, query, variables, operation_name, allowed)
        except DocumentRefused as refused:
            return _once(_result(caller, None, refused.errors))
        if ready.kind is core.OperationType.SUBSCRIPTION:
            return self._subscribe(caller, ready, variables, operation_name)
        return self._alone(caller, ready, variables, operation_name)

    async def _alone(self, *asked: Any) -> AsyncGenerator[StreamedResult, None]:
        yield StreamedResult(await self._execute(*asked))

    async def _subscribe(
        self,
        caller: Caller,
        ready: Ready,
        variables: Mapping[str, Any] | None,
        operation_name: str | None,
    ) -> AsyncGenerator[StreamedResult, None]:
        release = None
        document = ready.document
        try:
            if ready.meter:
                ready.meter.charge(ready.demand, ready.preparation + SUBSCRIPTION)
                await ready.meter.settle()
            await caller.check_session()
            release = caller.acquire_stream()
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
                yield StreamedResult(_result(caller, None, cast("list[GraphQLError]", events)))
                return
            complete = self._completion(source, document, variables, operation_name, context)
            del document, ready, variables, source  # a filter may be large, and the stream may last for days
            async with aclosing(events):
                async for event in events:
                    async with caller.event_turns:
                        result = await complete(event)
                    yield StreamedResult(_result(caller, result.data, result.errors), event.number)
        except Exception as error:
            yield StreamedResult(_result(caller, None, [_as_graphql(error)]))
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


async def _admit(checking: "asyncio.Future[bool] | None", meter: Meter | None) -> None:
    """Wait for the session check and the charges. Raises BadToken or RateLimited."""
    if checking and not await checking:
        raise BadToken(SESSION_ENDED)
    if meter and meter.waits:
        await meter.settle()


def was_executed(result: ExecutionResult) -> bool:
    """Tell whether this comes from executing something, if in vain; else it says why nothing is, or no longer."""
    return result.data is not None or any(error.path for error in result.errors or ())


async def _once(result: ExecutionResult) -> AsyncGenerator[StreamedResult, None]:
    yield StreamedResult(result)


async def _events_of(source: "CoreExecutor[Any]") -> AsyncGenerator[Update, None] | list[GraphQLError]:
    """Begin to listen to the events of a subscription; or give the errors of its arguments."""
    stream = create_source_event_stream(source)
    stream = await stream if isawaitable(stream) else stream
    return stream.errors or [] if isinstance(stream, CoreResult) else cast("AsyncGenerator[Update, None]", stream)


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
