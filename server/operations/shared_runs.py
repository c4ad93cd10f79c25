"""Shared runs: subscriptions with equal operations that take the same event together share one execution of it.

Subscriptions form a group if their documents, operations and variables are equal, apart from the arguments of the root
field. Those that ask for an event in one iteration of the event loop share a run, which begins in the next iteration,
and the JSON of its result. So no result is older than if each had executed the event itself, nothing is kept, and a
subscription that lags or replays runs by itself: it takes its events at other times, or others.

Fields that are declared `independent` have the same values for every client and are executed once. The values of all
others are resolved in the context of each subscription, and what is selected of them is completed as one layer. If that
again depends on the viewer, the subscriptions form no group.
"""

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextvars import Context as Variables
from functools import partial
from itertools import repeat
from secrets import token_hex
from typing import TypeAlias
from weakref import WeakValueDictionary

import orjson
from graphql.execution import ExecutionResult as CoreResult

from executor import Operation
from executor.steps import Open
from graph import Graph
from graph.archive.usage import used_by
from graph.feed.updates import Change
from resolvers.context import Context
from server.errors import UNAVAILABLE, code_for
from server.operations.live_events import LiveEvents, shared_usage

logger = logging.getLogger("fanline.server")


Outcome: TypeAlias = bytes | CoreResult | None
"""What a run has given: the JSON of a result without errors; a result whose errors each client gets with the id of its
request; or None if the subscription must execute the event itself."""

Callback: TypeAlias = Callable[[Outcome], None]


class SharedRun:
    """One execution of an event, and the subscriptions that wait for it. The last one that leaves cancels it.

    `size` is the number of subscriptions that have joined.
    """

    __slots__ = ("_awaited_by", "_callbacks", "_contexts", "_task", "event", "size")

    def __init__(self, event: Change) -> None:
        self.event = event
        self.size = 0
        self._contexts: list[Context] = []
        self._callbacks: list[Callback] = []
        self._awaited_by = 0
        self._task: asyncio.Task[None] | None = None

    def join(self, context: Context, callback: Callback) -> None:
        """Call a function with the outcome in a subscription's context, also after `leave`. It must not raise."""
        self._callbacks.append(callback)
        self._contexts.append(context)
        self.size += 1
        self._awaited_by += 1

    def leave(self) -> None:
        """Note that one subscription waits no longer."""
        self._awaited_by -= 1
        if not self._awaited_by and self._task is not None:
            self._task.cancel()

    def start(self, group: "Group") -> None:
        """Start the execution, if anybody still waits for it."""
        if self._awaited_by:
            self._task = asyncio.get_running_loop().create_task(self._run(group))

    async def _run(self, group: "Group") -> None:
        outcomes: Iterable[Outcome] = repeat(None)
        try:
            with used_by(shared_usage()):
                outcomes = await group.execute(self.event, self._contexts)
        finally:
            for callback, outcome in zip(self._callbacks, outcomes, strict=False):
                callback(outcome)
            self._callbacks.clear()
            self._contexts.clear()


class Group:
    """The subscriptions with one operation. It exists as long as one of them holds it."""

    __slots__ = ("__weakref__", "_events", "_graph", "_runs", "operation")

    def __init__(self, operation: Operation, graph: Graph, events: LiveEvents) -> None:
        self.operation = operation
        self._events = events
        self._graph = graph
        self._runs: dict[int, SharedRun] = {}

    async def complete(self, event: Change, context: Context) -> tuple[Outcome, int]:
        """Return the outcome of an event, executed once for all that ask for it in this iteration of the event loop.

        The second value is the number of those.
        `context` is that of the subscription, in which the fields that depend on the viewer are resolved.
        A cancelled call cancels nothing that others wait for.
        """
        run, waiter = self.run_of(event), asyncio.get_running_loop().create_future()
        self.join(run, context, partial(_set_result, waiter))
        try:
            outcome: Outcome = await waiter
        except asyncio.CancelledError:
            run.leave()
            raise
        return outcome, run.size

    def join(self, run: SharedRun, context: Context, callback: Callback) -> None:
        """Join a run, as `SharedRun.join` does. What it looks up for the viewer is shared with the viewer's others."""
        if not self.operation.is_independent:
            self._events.reads.close(self._events.reads.join(context, run.event))
        run.join(context, callback)

    def run_of(self, event: Change) -> SharedRun:
        """Return the run that those share who ask for an event in this iteration of the event loop."""
        run = self._runs.get(id(event))
        if run is None:
            run = self._runs[id(event)] = SharedRun(event)
            # in a context of its own: it belongs to no client, although one has started it
            asyncio.get_running_loop().call_soon(self._start, run, context=Variables())
        return run

    def _start(self, run: SharedRun) -> None:
        del self._runs[id(run.event)]
        run.start(self)

    async def execute(self, event: Change, contexts: Sequence[Context]) -> Iterable[Outcome]:
        """Execute an event for all.

        If the shared part fails, each subscription executes the event itself, unless the cause is an outage.
        """
        try:
            if not self.operation.is_independent:
                return await self._execute_open(event, contexts)
            context = self._events.reads.without_viewer(self._graph, event)
            await self._events.turns.start()
            completed = await self.operation.run(event, context)
            if not completed.errors:
                return repeat(orjson.dumps({"data": completed.data}))
            unexpected = [error for error in completed.errors if code_for(error) not in UNAVAILABLE]
            if not unexpected:
                return repeat(completed)
            logger.error("A shared execution failed at %s: %r", unexpected[0].path, unexpected[0].original_error)
        except Exception:
            logger.exception("A shared execution failed")
        return repeat(None)

    async def _execute_open(self, event: Change, contexts: Sequence[Context]) -> Iterable[Outcome]:
        """Execute what is the same for all once, and what depends on the viewer in each context, as one layer."""
        if len(contexts) == 1:
            return repeat(None)
        context = self._events.reads.without_viewer(self._graph, event)
        await self._events.turns.start()
        run = await self.operation.run_open(event, context)
        if run is None:
            return repeat(None)
        template = Template(run.data)
        return [
            None if values is None else template.filled(values) for values in await run.fill(template.cells, contexts)
        ]


def _set_result(waiter: "asyncio.Future[Outcome]", outcome: Outcome) -> None:
    if not waiter.done():
        waiter.set_result(outcome)


class Template:
    """The JSON of a response with open cells. Their places are marked with a random word, which no text contains."""

    def __init__(self, data: object) -> None:
        self.cells: list[Open] = []
        self._mark = token_hex(16)
        self._pieces = orjson.dumps({"data": data}, default=self._leave_open).split(b'"%b"' % self._mark.encode())

    def _leave_open(self, value: object) -> str:
        if not isinstance(value, Open):
            raise TypeError(f"A {type(value).__name__} is not JSON.")
        self.cells.append(value)
        return self._mark

    def filled(self, values: Sequence[object]) -> bytes:
        """Return the JSON with the values of the cells."""
        parts = [self._pieces[0]]
        for value, piece in zip(values, self._pieces[1:], strict=True):
            parts += (orjson.dumps(value), piece)
        return b"".join(parts)


class Groups:
    """The groups of a process, by operation."""

    def __init__(self, events: LiveEvents) -> None:
        self._events = events
        self._groups: WeakValueDictionary[Hashable, Group] = WeakValueDictionary()

    def join(self, operation: Operation, graph: Graph) -> Group | None:
        """Return the group of an operation. None if its results depend on the client too deeply."""
        if not (operation.is_independent or operation.can_leave_open):
            return None
        key = operation.key, graph
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(operation, graph, self._events)
        return group
