"""Shared runs: subscriptions with equal operations that take the same event together share one execution of it.

Subscriptions form a group if their results are the same for every client: their documents, operations and variables
are equal, apart from the arguments of the root field, and all fields are declared `independent`. Those that ask for an
event in one iteration of the event loop share a run, which begins in the next iteration, and the JSON of its result. So
no result is older than if each had executed the event itself, nothing is kept, and a subscription that lags or replays
runs by itself: it takes its events at other times, or others.
"""

import asyncio
import logging
from collections.abc import Hashable
from contextvars import Context
from weakref import WeakValueDictionary

import orjson
from graphql.execution import ExecutionResult as CoreResult
from strawberry.types import ExecutionResult

from executor import Operation
from graph import Graph
from resolvers.shared_context import SharedContext
from server.errors import UNAVAILABLE, code_for

logger = logging.getLogger("fanline.server")


class Outcome:
    """What a run has given: a result without errors and its JSON, or a result that each client has to complete."""

    __slots__ = ("completed", "payload", "result")

    def __init__(self, completed: CoreResult) -> None:
        self.completed = completed
        self.result = ExecutionResult(completed.data, None)
        self.payload = None if completed.errors else orjson.dumps({"data": completed.data})


class SharedRun:
    """One execution of an event, and the subscriptions that wait for it. The last one that leaves cancels it."""

    __slots__ = ("_awaited_by", "_task", "_waiters", "event")

    def __init__(self, event: object) -> None:
        self.event = event
        self._waiters: list[asyncio.Future[Outcome | None]] = []
        self._awaited_by = 0
        self._task: asyncio.Task[None] | None = None

    def join(self) -> "asyncio.Future[Outcome | None]":
        """Return a future of the outcome. If waiting for it is cancelled, call `leave`."""
        waiter: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._awaited_by += 1
        return waiter

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
        outcome = None
        try:
            outcome = await group.execute(self.event)
        finally:
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_result(outcome)
            self._waiters.clear()


class Group:
    """The subscriptions with one operation. It exists as long as one of them holds it."""

    __slots__ = ("__weakref__", "_graph", "_runs", "operation")

    def __init__(self, operation: Operation, graph: Graph) -> None:
        self.operation = operation
        self._graph = graph
        self._runs: dict[int, SharedRun] = {}

    async def complete(self, event: object) -> Outcome | None:
        """Return the outcome of an event, executed once for all that ask for it in this iteration of the event loop.

        None if the subscription must execute the event itself. A cancelled call cancels nothing that others wait for.
        """
        run = self._runs.get(id(event))
        if run is None:
            run = self._runs[id(event)] = SharedRun(event)
            # in a context of its own: it belongs to no client, although one has started it
            asyncio.get_running_loop().call_soon(self._start, run, context=Context())
        try:
            return await run.join()
        except asyncio.CancelledError:
            run.leave()
            raise

    def _start(self, run: SharedRun) -> None:
        del self._runs[id(run.event)]
        run.start(self)

    async def execute(self, event: object) -> Outcome | None:
        """Execute an event for all. Return None if that fails otherwise than by an outage, which all would meet."""
        try:
            completed = await self.operation.run(event, SharedContext(self._graph))
            unexpected = [error for error in completed.errors or () if code_for(error) not in UNAVAILABLE]
            if not unexpected:
                return Outcome(completed)
            logger.error("A shared execution failed at %s: %r", unexpected[0].path, unexpected[0].original_error)
        except Exception:
            logger.exception("A shared execution failed")
        return None


class Groups:
    """The groups of a process, by operation."""

    def __init__(self) -> None:
        self._groups: WeakValueDictionary[Hashable, Group] = WeakValueDictionary()

    def join(self, operation: Operation, graph: Graph) -> Group | None:
        """Return the group of an operation. None if its results may depend on the client."""
        if not operation.is_independent:
            return None
        key = operation.key, graph
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(operation, graph)
        return group
