"""Live events: the look-ups and executions that the subscriptions of one process share, and limits on concurrency.

The subscriptions of one viewer share the look-ups for an event, even if they select different fields, provided that
they ask for the event before any of them starts a look-up.

Subscriptions with equal operations share one execution of an event. They form a group if their documents, operations
and variables are equal, apart from the arguments of the root field. The members that ask for an event in the same
iteration of the event loop share a run and the JSON of its result. The run begins in the next iteration. Fields that
are declared `independent` have the same values for every client and are executed once. All other fields are resolved in
the context of each subscription, and their values are completed as one layer. If a field below such a field depends on
the viewer too, the subscriptions form no group.

Results are therefore as fresh as if each subscription had executed the event itself: nothing is cached for
subscriptions that ask later or for another event. A subscription that lags or replays events executes them alone,
because it asks for its events at other times.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Hashable, Iterable, Sequence
from contextlib import asynccontextmanager
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
from graph.archive.usage import Usage, used_by
from graph.feed.updates import Change
from resolvers.context import Context
from resolvers.shared_context import SharedContext
from server.errors import UNAVAILABLE, code_for

AT_ONCE = 4  # executions of one holder
STARTS = 8  # executions that start in one iteration of the event loop; each takes up to a millisecond
SHARED_USAGE = "live events"

logger = logging.getLogger("fanline.server")

Outcome: TypeAlias = bytes | CoreResult | None
"""The outcome of a run for one subscription: a result without errors, as JSON; a result with errors, which each client
gets with its own request id; or None if the subscription must execute the event itself."""

Callback: TypeAlias = Callable[[Outcome], None]


class JoinedContexts:
    """Contexts whose look-ups are shared. Executions can join a shared context until one of them starts a look-up."""

    def __init__(self) -> None:
        self._contexts: WeakValueDictionary[Hashable, Context] = WeakValueDictionary()
        self._closing: list[Hashable] = []

    def join(self, context: Context, event: Change) -> Hashable:
        """Let `context` share its look-ups with all contexts of the same viewer that join for the event.

        Return the key for `close`. `Context.forget` ends the sharing for its context.
        """
        key = context.graph, context.viewer_id, event.number
        shared = self._contexts.get(key)
        if shared is None:
            shared = self._contexts[key] = Context(context.graph, context.viewer, context.issue_token)
        context.share_look_ups_of(shared)
        return key

    def close(self, key: Hashable) -> None:
        """Record that a look-up begins. No execution can join after this iteration of the event loop."""
        if not self._closing:
            asyncio.get_running_loop().call_soon(self._remove)
        self._closing.append(key)

    def without_viewer(self, graph: Graph, event: Change) -> Context:
        """Return the context without a viewer, shared by all executions of the event in this event-loop iteration."""
        key = graph, SHARED_USAGE, event.number
        shared = self._contexts.get(key)
        if shared is None:
            shared = self._contexts[key] = SharedContext(graph)
            self.close(key)
        return shared

    def _remove(self) -> None:
        for key in self._closing:
            self._contexts.pop(key, None)
        self._closing.clear()


class EventTurns:
    """Limits each holder to `AT_ONCE` concurrent executions of events.

    All holders together may start at most `STARTS` executions per event-loop iteration.
    """

    def __init__(self) -> None:
        self._of_holders: WeakValueDictionary[Hashable, asyncio.Semaphore] = WeakValueDictionary()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._started = 0

    @asynccontextmanager
    async def turn(self, holder: Hashable) -> AsyncGenerator[None]:
        """Run the `with` block once the holder has fewer than `AT_ONCE` executions and the next one may start."""
        turns = self._of_holders.get(holder)
        if turns is None:
            turns = self._of_holders[holder] = asyncio.Semaphore(AT_ONCE)
        async with turns:
            await self.start()
            yield

    async def start(self) -> None:
        """Wait until the next execution may start, so that the event loop can serve other tasks between executions."""
        if not self._started and not self._waiting:
            asyncio.get_running_loop().call_soon(self._next_iteration)
        if self._started < STARTS and not self._waiting:
            self._started += 1
            return
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await waiting

    def _next_iteration(self) -> None:
        self._started = 0
        while self._waiting and self._started < STARTS:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                self._started += 1
        if self._started:
            asyncio.get_running_loop().call_soon(self._next_iteration)


class SharedRun:
    """One execution of an event, and the subscriptions that wait for its outcome.

    The execution is cancelled when the last subscription leaves. `size` is the number of subscriptions that joined.
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
        """Add a subscription. `callback` gets the outcome for `context`, even after `leave`, and must not raise."""
        self._callbacks.append(callback)
        self._contexts.append(context)
        self.size += 1
        self._awaited_by += 1

    def leave(self) -> None:
        """Record that a subscription no longer waits. Cancel the execution if no other subscription waits."""
        self._awaited_by -= 1
        if not self._awaited_by and self._task is not None:
            self._task.cancel()

    def start(self, group: "Group") -> None:
        """Start the execution if a subscription still waits for it."""
        if self._awaited_by:
            self._task = asyncio.get_running_loop().create_task(self._run(group))

    async def _run(self, group: "Group") -> None:
        outcomes: Iterable[Outcome] = repeat(None)
        try:
            with used_by(Usage(SHARED_USAGE, anonymous=False)):  # not the usage of a viewer
                outcomes = await group.execute(self.event, self._contexts)
        finally:
            for callback, outcome in zip(self._callbacks, outcomes, strict=False):
                callback(outcome)
            self._callbacks.clear()
            self._contexts.clear()


class Group:
    """The subscriptions with equal operations. A group exists as long as a subscription refers to it."""

    __slots__ = ("__weakref__", "_events", "_graph", "_runs", "operation")

    def __init__(self, operation: Operation, graph: Graph, events: "LiveEvents") -> None:
        self.operation = operation
        self._events = events
        self._graph = graph
        self._runs: dict[int, SharedRun] = {}

    async def complete(self, event: Change, context: Context) -> tuple[Outcome, int]:
        """Return the outcome of an event, and the number of subscriptions that shared its run.

        The event is executed once for all subscriptions that ask for it in this iteration of the event loop. Fields
        that depend on the viewer are resolved in `context`. Cancelling the call does not cancel a run that other
        subscriptions wait for.
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
        """Join a run: see `SharedRun.join`. The viewer's subscriptions share the look-ups that depend on the viewer."""
        if not self.operation.is_independent:
            self._events.reads.close(self._events.reads.join(context, run.event))
        run.join(context, callback)

    def run_of(self, event: Change) -> SharedRun:
        """Return the run shared by all subscriptions that ask for an event in this iteration of the event loop."""
        run = self._runs.get(id(event))
        if run is None:
            run = self._runs[id(event)] = SharedRun(event)
            # in an empty context: the run belongs to no client, although one client has started it
            asyncio.get_running_loop().call_soon(self._start, run, context=Variables())
        return run

    def _start(self, run: SharedRun) -> None:
        del self._runs[id(run.event)]
        run.start(self)

    async def execute(self, event: Change, contexts: Sequence[Context]) -> Iterable[Outcome]:
        """Execute an event for several contexts. Return an outcome for each.

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
        """Execute independent fields once, and fields that depend on the viewer in each context, as one layer."""
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
    """The JSON of a response with open cells. A random word, which no text contains, marks the place of each cell."""

    def __init__(self, data: object) -> None:
        self.cells: list[Open] = []
        self._mark = token_hex(16)
        self._pieces = orjson.dumps({"data": data}, default=self._leave_open).split(b'"%b"' % self._mark.encode())

    def _leave_open(self, value: object) -> str:
        if not isinstance(value, Open):
            raise TypeError(f"A value of type {type(value).__name__} cannot be encoded as JSON.")
        self.cells.append(value)
        return self._mark

    def filled(self, values: Sequence[object]) -> bytes:
        """Return the JSON with these values in the open cells, in the order of `cells`."""
        parts = [self._pieces[0]]
        for value, piece in zip(values, self._pieces[1:], strict=True):
            parts += (orjson.dumps(value), piece)
        return b"".join(parts)


class LiveEvents:
    """The shared state of a process's live subscriptions: shared look-ups, turns of executions, and groups."""

    def __init__(self) -> None:
        self.reads = JoinedContexts()
        self.turns = EventTurns()
        self._groups: WeakValueDictionary[Hashable, Group] = WeakValueDictionary()

    def join(self, operation: Operation, graph: Graph) -> Group | None:
        """Return the group of an operation, or None if fields in more than one layer depend on the client."""
        if not (operation.is_independent or operation.can_leave_open):
            return None
        key = operation.key, graph
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(operation, graph, self)
        return group
