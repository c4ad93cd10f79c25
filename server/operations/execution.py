"""Execution of operations: a single result, or a stream of results.

The document of a request is taken from the cache, or parsed and validated, and the cost of its operation is compared
with the limits. The operation then waits until its holder (the user, or the network of an anonymous client) may run one
more operation, is charged, and is executed. Its deadline includes the waiting time.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Collection, Coroutine, Mapping
from typing import Any

import graphql as core
from graphql import GraphQLError
from graphql.execution import ExecutionResult as CoreResult
from starlette.requests import ClientDisconnect
from strawberry import Schema
from strawberry.schema.exceptions import InvalidOperationTypeError
from strawberry.types import ExecutionResult
from strawberry.types.graphql import OperationType

from executor import Executor
from graph.archive.usage import used_by
from graph.recording import recorded
from resolvers.context import Context
from resolvers.recording import OperationRecording
from server.auth import BadToken
from server.errors import MAX_ERRORS, RateLimited, overloaded
from server.log_context import LOGGED
from server.operations.caller import SESSION_ENDED, Caller
from server.operations.cost import OperationLimits
from server.operations.deadlines import Deadlines, cancel_on_disconnect
from server.operations.documents import ALL_KINDS, DocumentCache, DocumentRefused, PreparedOperation
from server.operations.observation import Observation
from server.operations.parsing import DocumentLimits
from server.operations.quotas import Turns
from server.operations.rates import Meter, preparation_points
from server.operations.subscriptions import SendNow, StreamedResult, Subscriptions
from server.transport.admission import PERMIT_OF_TASK


class Execution:
    """Executes operations of one schema: `execute` returns one result, `stream` yields results.

    A client that requests an explanation with `explain` gets one in the extensions of each result, if `observation`
    permits explanations.
    """

    def __init__(
        self,
        schema: Schema,
        documents: DocumentLimits,
        limits: OperationLimits,
        *,
        introspection: bool,
        locations: bool = True,
        observation: Observation | None = None,
    ) -> None:
        self.schema = schema
        self.limits = limits
        self.executor = Executor(schema._schema, hide_suggestions=not introspection, max_errors=MAX_ERRORS)
        self.documents = DocumentCache(
            schema._schema, documents, introspection=introspection, locations=locations, on_evict=self.executor.forget
        )
        self.trusted_names: set[str] = set()
        self._deadlines = Deadlines(limits.deadline.total_seconds())
        self._turns = Turns(limits.at_once)
        self._observation = observation or Observation()
        self._subscriptions = Subscriptions(
            schema._schema, self.executor, self._deadlines, self._observation, hide_suggestions=not introspection
        )

    def pin(self, text: str) -> list[str]:
        """Prepare a trusted document for the life of the process. Return its errors as sentences, if any."""
        try:
            prepared = self.documents.pin(text)
            self.trusted_names.update(prepared.names)
            prepared.check_smallest(self.limits)
        except DocumentRefused as refused:
            return [_with_place(error) for error in refused.errors]
        return []

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
        """Execute a query or a mutation. Return its result, in which every error has a code.

        The session check and the charge to rate limits share the first round trip of a query. The result is returned
        only if the session is live and no rate limit is used up. A mutation waits for both before it runs. Raises
        InvalidOperationTypeError if the kind of the operation is not allowed.
        """
        meter = caller.start_meter()
        try:
            prepared = self._prepare(caller, meter, query, variables, operation_name, allowed)
        except DocumentRefused as refused:
            return caller.result(None, refused.errors)
        return await self._execute(caller, meter, prepared, explain=explain)

    def _prepare(
        self,
        caller: Caller,
        meter: Meter | None,
        query: str,
        variables: Mapping[str, Any] | None,
        operation_name: str | None,
        allowed: Collection[OperationType],
    ) -> PreparedOperation:
        """Prepare the document of a request, and return its operation if its cost is within the limits. No round trip.

        A refused request is charged for the preparation of its document. Raises InvalidOperationTypeError if the kind
        of the operation is not allowed. Raises DocumentRefused for other problems, including a holder with too few
        points for the preparation.
        """
        try:
            document = self.documents.known(query)
            if document is None:
                if meter:
                    meter.begin_preparation(query)
                document = self.documents.prepare(query)
            return document.operation(operation_name or None, variables or {}, self.limits, allowed)
        except RateLimited as limited:
            raise DocumentRefused([limited]) from None
        except (DocumentRefused, InvalidOperationTypeError):
            if meter:
                caller.charge_refused_request(meter, preparation_points(query))
            raise

    async def _execute(
        self, caller: Caller, meter: Meter | None, prepared: PreparedOperation, *, explain: bool
    ) -> ExecutionResult:
        """Execute an operation. Record its latency and, if requested or sampled, its explanation or trace."""
        started = time.perf_counter()
        LOGGED.set((caller.request_id, prepared.name))
        recording = self._observation.recording(asked=explain)
        if recording is None:
            result = await self._execute_in_time(caller, meter, prepared, None)
        else:
            with recorded(recording):
                result = await self._execute_in_time(caller, meter, prepared, recording)
            self._observation.add(prepared, recording, result, caller.request_id, asked=explain)
        self._observation.timed(prepared, time.perf_counter() - started)
        return result

    async def _execute_in_time(
        self, caller: Caller, meter: Meter | None, prepared: PreparedOperation, recording: OperationRecording | None
    ) -> ExecutionResult:
        try:
            with self._deadlines.start(caller.graph.store.running_loop()) as deadline:
                running = self._run_in_turn(caller, meter, prepared, recording)
                if prepared.cost.hashes and caller.receive:
                    return await cancel_on_disconnect(running, caller.receive)
                return await running
        except ClientDisconnect:
            raise
        except TimeoutError as error:
            return caller.failure(self._deadlines.error() if deadline.expired else error)
        except Exception as error:
            return caller.failure(error)

    async def _run_in_turn(
        self, caller: Caller, meter: Meter | None, prepared: PreparedOperation, recording: OperationRecording | None
    ) -> ExecutionResult:
        """Wait for the holder's turn, then charge the operation, check the session, and run it: see `execute`."""
        if meter and not self._turns.try_acquire(meter.holder):
            await self._wait_for_turn(caller, meter)
        checking = None
        usage = caller.usage(meter, prepared.cost.prepaid)
        try:
            if meter:
                meter.charge(prepared.cost)
            checking = caller.start_session_check()
            with used_by(usage):
                if prepared.kind is core.OperationType.MUTATION:
                    await _await_checks(checking, meter)
                    context = caller.context(meter)
                    result = await self._run(prepared, context, recording)
                    if meter:
                        await meter.give_back_sign_ups(prepared.cost.sign_ups - context.users_created)
                else:
                    result = await self._run(prepared, caller.context(meter), recording)
                    await _await_checks(checking, meter)
        except BaseException:
            if checking:
                checking.cancel()
            if meter:
                meter.detach()
            raise
        finally:
            usage.end()
            if recording is not None:
                recording.owed = max(0, usage.points - prepared.cost.prepaid)
            if meter:
                self._turns.release(meter.holder)
        return caller.result(result.data, result.errors)

    async def _wait_for_turn(self, caller: Caller, meter: Meter) -> None:
        """Wait for a turn, without holding the request's admission permit meanwhile.

        If the wait fails, charge the preparation of the document. Raises RateLimited if too many operations wait, and
        GraphQLError if the permit cannot be resumed because the server is overloaded.
        """
        permit = PERMIT_OF_TASK.get()
        if permit:
            permit.release()
        try:
            await self._turns.acquire(meter.holder)
        except BaseException as error:
            if meter.preparation:
                caller.charge_refused_request(meter, meter.preparation)
            if isinstance(error, RateLimited):
                meter.record(error)
            raise
        if permit and not permit.resume():
            self._turns.release(meter.holder)
            refused = overloaded()
            raise GraphQLError(refused.message, extensions={"code": refused.code})

    def _run(
        self, prepared: PreparedOperation, context: Context, recording: OperationRecording | None
    ) -> Coroutine[Any, Any, CoreResult]:
        return self.executor.execute(
            prepared.document,
            context_value=context,
            variable_values=prepared.variables,
            operation_name=prepared.name,
            observer=recording,
        )

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
        """Execute an operation. Yield its result, or one result for each event of a subscription. Errors have codes.

        Results of live events are passed to `send_now` if possible, and otherwise yielded. A failure before or during
        execution yields a final result without data. The call itself, not the iteration, raises
        InvalidOperationTypeError if the kind of the operation is not allowed.
        """
        meter = caller.start_meter()
        try:
            prepared = self._prepare(caller, meter, query, variables, operation_name, allowed)
        except DocumentRefused as refused:
            return _single(caller.result(None, refused.errors))
        if prepared.kind is core.OperationType.SUBSCRIPTION:
            return self._subscriptions.run(caller, meter, prepared, send_now, explain=explain)
        return self._stream_one(caller, meter, prepared, explain=explain)

    async def _stream_one(self, *arguments: Any, explain: bool) -> AsyncGenerator[StreamedResult, None]:
        yield StreamedResult(await self._execute(*arguments, explain=explain))


async def _await_checks(checking: "asyncio.Future[bool] | None", meter: Meter | None) -> None:
    """Wait for the session check and the charges. Raises BadToken if the session has ended, or RateLimited."""
    if checking and not await checking:
        raise BadToken(SESSION_ENDED)
    if meter and meter.pending:
        await meter.settle()


async def _single(result: ExecutionResult) -> AsyncGenerator[StreamedResult, None]:
    yield StreamedResult(result)


def _with_place(error: GraphQLError) -> str:
    place = error.locations[0] if error.locations else None
    return f"{error.message} (line {place.line}, column {place.column})" if place else error.message
