"""Subscriptions: each yields a result for every event, executed alone or in a run shared with equal subscriptions.

Couriers send the results of shared runs over WebSockets without waking the subscriptions' tasks.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable
from typing import Any, TypeAlias, cast

from graphql import GraphQLError, GraphQLSchema
from graphql.execution import ExecutionResult as CoreResult
from graphql.execution import Executor as CoreExecutor
from graphql.execution import create_source_event_stream, execute_subscription_event
from strawberry.types import ExecutionResult

from executor import Executor, Operation
from executor.observer import Observer
from executor.plan import Fallback
from graph.feed.updates import (
    Change,
    FilteredUpdate,
    NotificationAdded,
    NotificationsChanged,
    NotificationUpdate,
    ThreadUpdate,
    TimelineUpdate,
)
from graph.recording import recorded
from resolvers.context import Context
from server.log_context import LOGGED
from server.operations.caller import Caller
from server.operations.cost import OperationCost
from server.operations.deadlines import Deadlines
from server.operations.documents import PreparedOperation
from server.operations.live_events import Group, LiveEvents, Outcome, SharedRun
from server.operations.observation import Observation
from server.operations.quotas import CHECKPOINT, share
from server.operations.rates import SUBSCRIPTION, Meter

Update: TypeAlias = TimelineUpdate | ThreadUpdate | FilteredUpdate | NotificationUpdate
Complete: TypeAlias = Callable[..., Awaitable[CoreResult]]

SendNow: TypeAlias = Callable[[bytes], bool]
"""Sends a result as JSON. Returns False and sends nothing if sending would have to wait for the client."""

IN_PAYLOAD = ExecutionResult(None, None)

logger = logging.getLogger("fanline.server")


@dataclass(frozen=True, slots=True)
class StreamedResult:
    """A result of a stream. `number` is the log number of its event, or None if it does not belong to an event.

    `payload` is the result as JSON, or None. If there is a payload, it has no errors, and `result` is empty.
    """

    result: ExecutionResult
    number: int | None = None
    payload: bytes | None = None


class Completion:
    """Executes the events of one subscription.

    A subscription with a `group` takes part in the shared runs of its events, but executes checkpoints and gaps alone.
    `explained` is its operation if the client requested explanations; in that case, it joins no shared run. `cost` is
    the cost of an event, which is charged to the caller. All subscriptions of the process share `events`.
    """

    __slots__ = (
        "_alone",
        "_context",
        "_cost",
        "_events",
        "_executed",
        "_explained",
        "_observation",
        "caller",
        "group",
    )

    def __init__(
        self,
        caller: Caller,
        alone: Complete,
        context: Context,
        group: Group | None,
        observation: Observation,
        explained: PreparedOperation | None,
        cost: OperationCost,
        events: LiveEvents,
    ) -> None:
        self.caller = caller
        self._alone = alone
        self._context = context
        self.group = None if explained else group
        self._observation = observation
        self._explained = explained
        self._cost = cost
        self._events = events
        self._executed: tuple[Change, Outcome] | None = None

    def keep(self, event: Change, outcome: Outcome) -> None:
        """Keep the outcome of the shared run of an event until `result` is called for the event."""
        self._executed = event, outcome

    async def wait_for_points(self, event: Update) -> None:
        """After an event, wait until the caller's next event may be executed.

        Return immediately for notifications: their stream itself waits, and combines events before reading them.
        """
        if not isinstance(event, NotificationAdded | NotificationsChanged):
            await self.caller.wait_for_event_points()

    def charge_shared(self, subscribers: int, outcome: Outcome) -> None:
        """Charge this subscription's share of an event that was executed for several subscriptions.

        Charge nothing if the outcome is None, because the subscription must then execute the event itself.
        """
        if outcome is not None:
            self.caller.charge_event(share(self._cost.points, subscribers))

    async def result(self, event: Update) -> StreamedResult:
        """Return the result for an event. Its errors have codes."""
        if self.group is not None and isinstance(event, Change):
            executed, self._executed = self._executed, None
            if executed is not None and executed[0] is event:
                outcome = executed[1]
            else:
                outcome, subscribers = await self.group.complete(event, self._context)
                self.charge_shared(subscribers, outcome)
            if isinstance(outcome, bytes):
                return StreamedResult(IN_PAYLOAD, event.number, outcome)
            if outcome is not None:
                return StreamedResult(self.caller.result(outcome.data, outcome.errors), event.number)
        caller, reads = self.caller, self._events.reads
        joined = reads.join(self._context, event) if isinstance(event, Change) else None
        async with self._events.turns.turn(caller.holder):
            if joined is not None:
                reads.close(joined)
            caller.charge_event(CHECKPOINT if joined is None else self._cost.points)
            with caller.reading_for_event(self._cost.prepaid):
                return StreamedResult(await self._by_itself(event), event.number)

    async def _by_itself(self, event: Update) -> ExecutionResult:
        """Execute an event for this subscription alone. Add an explanation if the client requested one."""
        caller, explained = self.caller, self._explained
        recording = self._observation.recording(asked=True) if explained is not None else None
        if explained is None or recording is None:
            completed = await self._alone(event)
            return caller.result(completed.data, completed.errors)
        with recorded(recording):
            completed = await self._alone(event, observer=recording)
        result = caller.result(completed.data, completed.errors)
        self._observation.add(explained, recording, result, caller.request_id, asked=True)
        return result


class SocketCourier:
    """Sends the results of shared runs for one subscription, without waking its task. Takes no updates before `start`.

    The subscription's task sends the results that the courier cannot send: results with errors, and results for clients
    that do not read. `Completion` keeps their outcomes for the task.
    """

    __slots__ = ("_completion", "_context", "_group", "_live_from", "_observation", "_run", "_send", "_taken")

    def __init__(self, send: SendNow, observation: Observation) -> None:
        self._send = send
        self._observation = observation
        self._live_from = 0
        self._group: Group | None = None
        self._run: SharedRun | None = None
        self._taken: tuple[Change, Callable[[bool], None]] | None = None

    def start(self, completion: Completion, context: Context, live_from: int) -> None:
        """Accept updates in `take` from now on, if the subscription belongs to a group."""
        self._completion = completion
        self._context = context
        self._live_from = live_from
        self._group = completion.group

    def take(self, update: Change, settle: Callable[[bool], None]) -> bool:
        """Join the shared run of an update, and return True. `settle` is called later with True if the result was sent.

        `settle` is called with False if the subscription's task must send the result. Return False if the subscription
        belongs to no group, or its next event must wait for event points.
        """
        group = self._group
        if group is None or self._completion.caller.event_delay():
            return False
        self._taken = update, settle
        run = self._run = group.run_of(update)
        group.join(run, self._context, self._deliver)
        return True

    def leave(self) -> None:
        """Drop the update that was taken, if any, because the subscription has ended."""
        run, self._run, self._taken = self._run, None, None
        if run is not None:
            run.leave()

    def _deliver(self, outcome: Outcome) -> None:
        taken, run, self._run, self._taken = self._taken, self._run, None, None
        if taken is None or run is None:
            return
        update, settle = taken
        self._completion.charge_shared(run.size, outcome)
        if self._group is not None and not self._group.operation.is_independent:
            self._context.forget()  # drop what the run has loaded: the task may execute the next event
        if isinstance(outcome, bytes) and self._has_sent(outcome):
            self._observation.delivered(update, self._live_from)
            settle(True)
        else:
            self._completion.keep(update, outcome)
            settle(False)

    def _has_sent(self, payload: bytes) -> bool:
        try:
            return self._send(payload)
        except Exception:
            logger.exception("A result could not be sent")
            return False


class Subscriptions:
    """Executes the subscriptions of one schema."""

    def __init__(
        self,
        schema: GraphQLSchema,
        executor: Executor,
        deadlines: Deadlines,
        observation: Observation,
        *,
        hide_suggestions: bool,
    ) -> None:
        self._build = partial(CoreExecutor.build, schema, hide_suggestions=hide_suggestions)
        self._executor = executor
        self._deadlines = deadlines
        self._observation = observation
        self._events = LiveEvents()

    async def run(
        self,
        caller: Caller,
        meter: Meter | None,
        prepared: PreparedOperation,
        send_now: SendNow | None,
        *,
        explain: bool,
    ) -> AsyncGenerator[StreamedResult, None]:
        """Execute a subscription. Yield a result for each event, except for results that `send_now` could send.

        A failure before or during execution yields a final result without data.
        """
        LOGGED.set((caller.request_id, prepared.name))
        release, courier = None, None if send_now is None else SocketCourier(send_now, self._observation)
        deadline = asyncio.timeout(self._deadlines.seconds)  # until the first event, the Checkpoint
        try:
            async with deadline:
                if meter:
                    meter.charge(prepared.cost, SUBSCRIPTION)
                    await meter.settle()
                release = caller.acquire_stream(prepared.root_fields)
                context = caller.context(courier=courier)
                source = self._build(prepared.document, None, context, dict(prepared.variables), prepared.name)
                with caller.reading_for_event():
                    events = source if isinstance(source, list) else await _events_of(source)
                    event = None if isinstance(events, list) else await anext(events, None)
            if isinstance(events, list) or isinstance(source, list):
                yield StreamedResult(caller.result(None, cast("list[GraphQLError]", events)))
                return
            completion = self._completion(caller, prepared, context, source, explain=explain)
            live_from = self._observation.stream_started()
            if courier is not None:
                courier.start(completion, context, live_from)
            # A filter may be large, and the stream may last for days.
            context.courier = None
            del meter, prepared, source, context, courier, send_now
            async with aclosing(events):
                while event is not None:
                    yield await completion.result(event)
                    self._observation.delivered(event, live_from)
                    await completion.wait_for_points(event)
                    with caller.reading_for_event():
                        event = await anext(events, None)
        except Exception as error:
            yield StreamedResult(caller.failure(self._deadlines.error() if deadline.expired() else error))
        finally:
            if release:
                release()

    def _completion(
        self,
        caller: Caller,
        prepared: PreparedOperation,
        context: Context,
        source: "CoreExecutor[Any]",
        *,
        explain: bool,
    ) -> Completion:
        """Return the object that executes the events of a subscription."""
        # preparation cannot fail, because the variables are already coerced
        planned = cast(
            "Operation | Fallback",
            self._executor.prepare(prepared.document, source.variable_values, prepared.name),
        )
        group = self._events.join(planned, caller.graph) if isinstance(planned, Operation) else None
        alone = completing_alone(group.operation if group else planned, context, source)
        explained = prepared._replace(variables={}) if explain else None  # variables may be long
        return Completion(caller, alone, context, group, self._observation, explained, prepared.cost, self._events)


async def _events_of(source: "CoreExecutor[Any]") -> AsyncGenerator[Update, None] | list[GraphQLError]:
    """Return the events of a subscription, or a list of errors if the subscription cannot start."""
    stream = create_source_event_stream(source)
    stream = await stream if isawaitable(stream) else stream
    return stream.errors or [] if isinstance(stream, CoreResult) else cast("AsyncGenerator[Update, None]", stream)


def completing_alone(planned: Operation | Fallback, context: Context, source: "CoreExecutor[Any]") -> Complete:
    """Return a function that executes an event for one context, with a plan or, for a Fallback, with graphql-core."""
    if isinstance(planned, Operation):
        return partial(planned.run, context_value=context)
    return partial(_complete_with_graphql_core, source, planned.reason)


async def _complete_with_graphql_core(
    source: "CoreExecutor[Any]", reason: str, event: Any, observer: Observer | None = None
) -> CoreResult:
    """Execute an event with graphql-core. Report the reason for the fallback to the observer, if any."""
    if observer is not None:
        observer.fell_back(reason)
    per_event = source.build_per_event_executor(event)
    per_event._relevant_sub_fields = {}  # otherwise it is shared and grows with every event
    result = execute_subscription_event(per_event)
    return await result if isawaitable(result) else result
