"""Completion of the events of one subscription: alone, or with the other subscriptions of its group."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable
from typing import Any, TypeAlias

from graphql import GraphQLError
from graphql.execution import ExecutionResult as CoreResult
from graphql.execution import Executor as CoreExecutor
from graphql.execution import execute_subscription_event
from strawberry.types import ExecutionResult

from executor import Operation
from executor.observer import Observer
from graph.feed.updates import (
    Change,
    HomeUpdate,
    NotificationAdded,
    NotificationsChanged,
    NotificationUpdate,
    StreamUpdate,
)
from graph.recording import recorded
from resolvers.context import Context
from server.errors import with_codes
from server.operations.caller import Caller
from server.operations.cost import OperationCost
from server.operations.live_events import Group, LiveEvents, Outcome
from server.operations.observation import Observation
from server.operations.preparation import PreparedOperation
from server.operations.quotas import CHECKPOINT, share

Update: TypeAlias = HomeUpdate | StreamUpdate | NotificationUpdate
Complete: TypeAlias = Callable[..., Awaitable[CoreResult]]

IN_PAYLOAD = ExecutionResult(None, None)


@dataclass(frozen=True, slots=True)
class StreamedResult:
    """A result of a stream. `number` is the log number of its event; None if the result does not belong to an event.

    `payload` is the result as JSON, if that is known; then there are no errors, and `result` has no data.
    """

    result: ExecutionResult
    number: int | None = None
    payload: bytes | None = None


class Completion:
    """Completes the events of a subscription of a caller.

    A subscription of a `group` takes part in the shared runs of its events. Checkpoints and gaps are its own.
    `cost` is that of an event, which the caller pays. `explained` is its operation if the client has asked for
    explanations. `events` are shared by all subscriptions of the process.
    """

    __slots__ = (
        "_alone",
        "_caller",
        "_context",
        "_cost",
        "_events",
        "_executed",
        "_explained",
        "_group",
        "_observation",
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
        self._caller = caller
        self._alone = alone
        self._context = context
        self._group = None if explained else group
        self._observation = observation
        self._explained = explained
        self._cost = cost
        self._events = events
        self._executed: tuple[Change, Outcome] | None = None

    @property
    def group(self) -> Group | None:
        """The group, unless each event is completed by itself."""
        return self._group

    def keep(self, event: Change, outcome: Outcome) -> None:
        """Keep the outcome of the shared run of an event until the result for that event is asked for."""
        self._executed = event, outcome

    def delay(self) -> float:
        """Return the seconds that the next event must wait for points of the caller."""
        return self._caller.event_delay()

    async def wait_for_points(self, event: Update) -> None:
        """Wait before the event after this one is taken, while the caller has used up the points of events.

        A stream of notifications waits by itself: it combines its events before it reads what they show.
        """
        if not isinstance(event, NotificationAdded | NotificationsChanged):
            await self._caller.wait_for_event_points()

    def charge_shared(self, subscribers: int, outcome: Outcome) -> None:
        """Charge an event that was executed together with other subscriptions, unless it has to be executed alone."""
        if outcome is not None:
            self._caller.charge_event(share(self._cost.points, subscribers))

    async def result(self, event: Update) -> StreamedResult:
        """Return the result for an event, whose errors have codes."""
        if self._group is not None and isinstance(event, Change):
            executed, self._executed = self._executed, None
            if executed is not None and executed[0] is event:
                outcome = executed[1]
            else:
                outcome, subscribers = await self._group.complete(event, self._context)
                self.charge_shared(subscribers, outcome)
            if isinstance(outcome, bytes):
                return StreamedResult(IN_PAYLOAD, event.number, outcome)
            if outcome is not None:
                return StreamedResult(result_of(self._caller, outcome.data, outcome.errors), event.number)
        caller, reads = self._caller, self._events.reads
        joined = reads.join(self._context, event) if isinstance(event, Change) else None
        async with self._events.turns.turn(caller.holder):
            if joined is not None:
                reads.close(joined)
            caller.charge_event(CHECKPOINT if joined is None else self._cost.points)
            with caller.reading_for_event(self._cost.prepaid):
                return StreamedResult(await self._by_itself(event), event.number)

    async def _by_itself(self, event: Update) -> ExecutionResult:
        """Return the result for an event, with an explanation if the client has asked for one."""
        caller, explained = self._caller, self._explained
        recording = self._observation.recording(asked=True) if explained is not None else None
        if explained is None or recording is None:
            completed = await self._alone(event)
            return result_of(caller, completed.data, completed.errors)
        with recorded(recording):
            completed = await self._alone(event, observer=recording)
        result = result_of(caller, completed.data, completed.errors)
        self._observation.add(explained, recording, result, caller.request_id, asked=True)
        return result


def completing_alone(operation: Operation | None, context: Context, source: "CoreExecutor[Any]", why: str) -> Complete:
    """Return the function that completes an event in this context: with graphql-core for this reason, or a plan."""
    if operation is not None:
        return partial(operation.run, context_value=context)
    return partial(_complete_with_graphql_core, source, why)


async def _complete_with_graphql_core(
    source: "CoreExecutor[Any]", reason: str, event: Any, observer: Observer | None = None
) -> CoreResult:
    """Complete an event with graphql-core, for this reason."""
    if observer is not None:
        observer.fell_back(reason)
    per_event = source.build_per_event_executor(event)
    per_event._relevant_sub_fields = {}  # otherwise it is shared and grows with every event
    result = execute_subscription_event(per_event)
    return await result if isawaitable(result) else result


def result_of(caller: Caller, data: dict[str, Any] | None, errors: Sequence[GraphQLError] | None) -> ExecutionResult:
    """Return a result whose errors have codes."""
    return ExecutionResult(data, with_codes(errors, caller.request_id) if errors else None)
