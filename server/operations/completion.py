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
from graph.feed.updates import Change, HomeUpdate, StreamUpdate
from graph.recording import recorded
from resolvers.context import Context
from server.errors import with_codes
from server.operations.caller import Caller
from server.operations.observation import Observation
from server.operations.preparation import PreparedOperation
from server.operations.shared_runs import Group, Outcome

Update: TypeAlias = HomeUpdate | StreamUpdate
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
    `explained` is its operation if the client has asked for explanations.
    """

    __slots__ = ("_alone", "_caller", "_context", "_executed", "_explained", "_group", "_observation")

    def __init__(
        self,
        caller: Caller,
        alone: Complete,
        context: Context,
        group: Group | None,
        observation: Observation,
        explained: PreparedOperation | None,
    ) -> None:
        self._caller = caller
        self._alone = alone
        self._context = context
        self._group = None if explained else group
        self._observation = observation
        self._explained = explained
        self._executed: tuple[Change, Outcome] | None = None

    @property
    def group(self) -> Group | None:
        """The group, unless each event is completed by itself."""
        return self._group

    def keep(self, event: Change, outcome: Outcome) -> None:
        """Keep the outcome of the shared run of an event until the result for that event is asked for."""
        self._executed = event, outcome

    async def result(self, event: Update) -> StreamedResult:
        """Return the result for an event, whose errors have codes."""
        if self._group is not None and isinstance(event, Change):
            executed, self._executed = self._executed, None
            if executed is not None and executed[0] is event:
                outcome = executed[1]
            else:
                outcome = await self._group.complete(event, self._context)
            if isinstance(outcome, bytes):
                return StreamedResult(IN_PAYLOAD, event.number, outcome)
            if outcome is not None:
                return StreamedResult(result_of(self._caller, outcome.data, outcome.errors), event.number)
        async with self._caller.event_turns:
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
