"""Execution of operations: a single result, or a stream of results."""

import asyncio
import time
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from inspect import isawaitable
from typing import Any, cast

import graphql as core
from graphql import DocumentNode, GraphQLError
from graphql.execution import ExecutionResult as CoreResult
from graphql.execution import Executor as CoreExecutor
from graphql.execution import create_source_event_stream
from starlette.requests import ClientDisconnect
from strawberry import Schema
from strawberry.types import ExecutionResult
from strawberry.types.graphql import OperationType

from executor import Executor, Operation
from executor.plan import Fallback
from graph.archive.usage import used_by
from graph.recording import recorded
from resolvers.context import Context
from resolvers.recording import current_recording
from server.auth import BadToken
from server.errors import DEADLINE_EXCEEDED, MAX_ERRORS, RateLimited, overloaded
from server.log_context import LOGGED
from server.operations.caller import SESSION_ENDED, Caller
from server.operations.completion import Completion, StreamedResult, Update, completing_alone, result_of
from server.operations.couriers import SendNow, SocketCourier
from server.operations.deadlines import Deadlines, cancel_on_disconnect
from server.operations.documents import DocumentCache, DocumentRefused
from server.operations.live_events import LiveEvents
from server.operations.observation import Observation
from server.operations.parsing import DocumentLimits
from server.operations.preparation import ALL_KINDS, OperationLimits, Preparation, PreparedOperation
from server.operations.quotas import Turns
from server.operations.rates import SUBSCRIPTION, Meter
from server.operations.root_fields import root_fields
from server.operations.variables import build_executor
from server.transport.admission import PERMIT_OF_TASK

SWITCHED_OFF = "FANLINE_EXECUTOR is false."


class Execution:
    """Executes operations of one schema: `execute` returns one result, `stream` yields results.

    `executor` executes breadth-first; without it, graphql-core executes. A client that passes `explain` gets an
    explanation in the extensions of its results, if `observation` permits it.
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
        observation: Observation | None = None,
    ) -> None:
        self.schema = schema
        self.limits = limits
        self.executor = (
            Executor(schema._schema, hide_suggestions=not introspection, max_errors=MAX_ERRORS)
            if breadth_first
            else None
        )
        on_evict = self.executor.forget if self.executor else None
        kept = DocumentCache(
            schema._schema, documents, introspection=introspection, locations=locations, on_evict=on_evict
        )
        self.preparation = Preparation(kept, limits)
        self._deadlines = Deadlines(limits.deadline.total_seconds())
        self._turns = Turns(limits.at_once)
        self._events = LiveEvents()
        self._hide_suggestions = not introspection
        self._observation = observation or Observation()

    async def execute(
        self,
        caller: Caller,
        query: str,
        variables: Mapping[str, Any] | None = None,
        operation_name: str | None = None,
        allowed: Collection[OperationType] = ALL_KINDS,
        *,
        explain: bool = False,
    ) -> ExecutionResult:
        """Execute a query or a mutation. Return its result; the errors have codes.

        The session check and the charge of rates share the first round trip of a query, whose result is returned only
        if the session is live and no rate is used up. A mutation waits for both first. Raises
        InvalidOperationTypeError if the kind of the operation is not allowed.
        """
        operation_name = operation_name or None
        try:
            prepared = self.preparation.prepare(caller, query, variables, operation_name, allowed)
        except DocumentRefused as refused:
            return result_of(caller, None, refused.errors)
        return await self._execute(caller, prepared, variables, operation_name, explain=explain)

    async def _execute(
        self,
        caller: Caller,
        prepared: PreparedOperation,
        variables: Mapping[str, Any] | None,
        operation_name: str | None,
        *,
        explain: bool,
    ) -> ExecutionResult:
        """Execute an operation, and observe it."""
        started = time.perf_counter()
        LOGGED.set((caller.request_id, prepared.name))
        recording = self._observation.recording(asked=explain)
        if recording is None:
            result = await self._execute_in_time(caller, prepared, variables, operation_name)
        else:
            with recorded(recording):
                result = await self._execute_in_time(caller, prepared, variables, operation_name)
            self._observation.add(prepared, recording, result, caller.request_id, asked=explain)
        self._observation.timed(prepared, time.perf_counter() - started)
        return result

    async def _execute_in_time(
        self,
        caller: Caller,
        prepared: PreparedOperation,
        variables: Mapping[str, Any] | None,
        operation_name: str | None,
    ) -> ExecutionResult:
        try:
            with self._deadlines.start(caller.graph.store.running_loop()) as deadline:
                running = self._run_in_turn(caller, prepared, variables, operation_name)
                if prepared.cost.hashes and caller.receive:
                    return await cancel_on_disconnect(running, caller.receive)
                return await running
        except ClientDisconnect:
            raise
        except TimeoutError as error:
            return result_of(caller, None, [self._deadline_exceeded() if deadline.expired else _as_graphql(error)])
        except Exception as error:
            return result_of(caller, None, [_as_graphql(error)])

    async def _run_in_turn(
        self,
        caller: Caller,
        prepared: PreparedOperation,
        variables: Mapping[str, Any] | None,
        operation_name: str | None,
    ) -> ExecutionResult:
        meter = prepared.meter
        if meter and not self._turns.try_acquire(meter.holder):
            await self._wait_for_turn(caller, meter, prepared.preparation)
        checking = None
        usage = caller.usage(meter, prepared.cost.prepaid)
        try:
            if meter:
                meter.charge(prepared.cost, prepared.preparation)
            checking = caller.start_session_check()
            with used_by(usage):
                if prepared.kind is core.OperationType.MUTATION:
                    await _await_checks(checking, meter)
                    context = caller.context(meter)
                    result = await self._run(prepared.document, context, variables, operation_name)
                    if meter:
                        await meter.give_back_sign_ups(prepared.cost.sign_ups - context.users_created)
                else:
                    result = await self._run(prepared.document, caller.context(meter), variables, operation_name)
                    await _await_checks(checking, meter)
        except BaseException:
            if checking:
                checking.cancel()
            if meter:
                meter.detach()
            raise
        finally:
            usage.end()
            recording = current_recording()
            if recording is not None:
                recording.owed = max(0, usage.points - prepared.cost.prepaid)
            if meter:
                self._turns.release(meter.holder)
        return result_of(caller, result.data, result.errors)

    async def _wait_for_turn(self, caller: Caller, meter: Meter, preparation: int) -> None:
        """Wait for a turn, without the permit. An operation that is refused one is charged for its preparation."""
        permit = PERMIT_OF_TASK.get()
        if permit:
            permit.release()
        try:
            await self._turns.acquire(meter.holder)
        except BaseException as error:
            if preparation:
                caller.charge_refused_request(meter, preparation)
            if isinstance(error, RateLimited):
                meter.record(error)
            raise
        if permit and not permit.resume():
            self._turns.release(meter.holder)
            refused = overloaded()
            raise GraphQLError(refused.message, extensions={"code": refused.code})

    def _deadline_exceeded(self) -> GraphQLError:
        message = (
            f"The operation exceeded the limit of {self._deadlines.seconds:g} seconds and was cancelled. "
            "If it was a mutation, check whether its changes were made before you retry."
        )
        return GraphQLError(message, extensions={"code": DEADLINE_EXCEEDED})

    async def _run(
        self,
        document: DocumentNode,
        context: Context,
        variables: Mapping[str, Any] | None,
        operation_name: str | None,
    ) -> CoreResult:
        recording = current_recording()
        if self.executor:
            return await self.executor.execute(
                document,
                context_value=context,
                variable_values=variables,
                operation_name=operation_name,
                observer=recording,
            )
        if recording is not None:
            recording.fell_back(SWITCHED_OFF)
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
        allowed: Collection[OperationType] = ALL_KINDS,
        *,
        explain: bool = False,
        send_now: SendNow | None = None,
    ) -> AsyncGenerator[StreamedResult, None]:
        """Execute an operation. Yield its result, or one result for each event of a subscription; errors have codes.

        Results of live events go to `send_now` where that is possible, and are not yielded then.
        A failure before or during execution yields a last result without data. Before the first result, raises the same
        error as `execute`.
        """
        operation_name = operation_name or None
        try:
            prepared = self.preparation.prepare(caller, query, variables, operation_name, allowed)
        except DocumentRefused as refused:
            return _single(result_of(caller, None, refused.errors))
        if prepared.kind is core.OperationType.SUBSCRIPTION:
            courier = None if send_now is None else SocketCourier(send_now, self._observation)
            return self._subscribe(caller, prepared, variables, operation_name, courier, explain=explain)
        return self._stream_one(caller, prepared, variables, operation_name, explain=explain)

    async def _stream_one(self, *arguments: Any, explain: bool) -> AsyncGenerator[StreamedResult, None]:
        yield StreamedResult(await self._execute(*arguments, explain=explain))

    async def _subscribe(
        self,
        caller: Caller,
        prepared: PreparedOperation,
        variables: Mapping[str, Any] | None,
        operation_name: str | None,
        courier: SocketCourier | None,
        *,
        explain: bool,
    ) -> AsyncGenerator[StreamedResult, None]:
        LOGGED.set((caller.request_id, prepared.name))
        release = None
        document = prepared.document
        deadline = asyncio.timeout(self._deadlines.seconds)  # until the first event, the Checkpoint
        try:
            async with deadline:
                if prepared.meter:
                    prepared.meter.charge(prepared.cost, prepared.preparation + SUBSCRIPTION)
                    await prepared.meter.settle()
                release = caller.acquire_stream(root_fields(document, operation_name))
                context = caller.context(courier=courier)
                source = self._source(document, context, variables, operation_name)
                with caller.reading_for_event():
                    events = source if isinstance(source, list) else await _events_of(source)
                    event = None if isinstance(events, list) else await anext(events, None)
            if isinstance(events, list) or isinstance(source, list):
                yield StreamedResult(result_of(caller, None, cast("list[GraphQLError]", events)))
                return
            completion = self._completion(source, prepared, variables, operation_name, caller, context, explain=explain)
            live_from = self._observation.stream_started()
            if courier is not None:
                courier.start(completion, context, live_from)
            # A filter may be large, and the stream may last for days.
            context.courier = None
            del document, prepared, variables, source, context, courier
            async with aclosing(events):
                while event is not None:
                    yield await completion.result(event)
                    self._observation.delivered(event, live_from)
                    await completion.wait_for_points(event)
                    with caller.reading_for_event():
                        event = await anext(events, None)
        except Exception as error:
            failure = self._deadline_exceeded() if deadline.expired() else _as_graphql(error)
            yield StreamedResult(result_of(caller, None, [failure]))
        finally:
            if release:
                release()

    def _source(
        self, document: DocumentNode, context: Context, variables: Mapping[str, Any] | None, operation_name: str | None
    ) -> "CoreExecutor[Any] | list[GraphQLError]":
        """Return graphql-core's executor of a subscription, or the errors of its variables."""
        return build_executor(
            self.schema._schema,
            document,
            context,
            variables or {},
            operation_name,
            hide_suggestions=self._hide_suggestions,
        )

    def _completion(
        self,
        source: "CoreExecutor[Any]",
        prepared: PreparedOperation,
        variables: Mapping[str, Any] | None,
        operation_name: str | None,
        caller: Caller,
        context: Context,
        *,
        explain: bool,
    ) -> Completion:
        """Return what completes the events of a subscription."""
        found = self.executor and self.executor.prepare(prepared.document, source.variable_values, operation_name)
        operation = found if isinstance(found, Operation) else None
        group = self._events.join(operation, caller.graph) if operation is not None else None
        reason = found.reason if isinstance(found, Fallback) else SWITCHED_OFF
        alone = completing_alone(group.operation if group else operation, context, source, reason)
        explained = prepared if explain else None
        return Completion(caller, alone, context, group, self._observation, explained, prepared.cost, self._events)


async def _await_checks(checking: "asyncio.Future[bool] | None", meter: Meter | None) -> None:
    """Wait for the session check and the charges. Raises BadToken, and RateLimited."""
    if checking and not await checking:
        raise BadToken(SESSION_ENDED)
    if meter and meter.pending:
        await meter.settle()


async def _single(result: ExecutionResult) -> AsyncGenerator[StreamedResult, None]:
    yield StreamedResult(result)


async def _events_of(source: "CoreExecutor[Any]") -> AsyncGenerator[Update, None] | list[GraphQLError]:
    """Return the events of a subscription, or the errors of its arguments."""
    stream = create_source_event_stream(source)
    stream = await stream if isawaitable(stream) else stream
    return stream.errors or [] if isinstance(stream, CoreResult) else cast("AsyncGenerator[Update, None]", stream)


def _as_graphql(error: Exception) -> GraphQLError:
    return error if isinstance(error, GraphQLError) else GraphQLError(str(error), original_error=error)
