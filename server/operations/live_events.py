"""Executions of live events in one process: they share what they read, take turns, and are charged to their viewers.

The subscriptions of a viewer that ask for an event before one of them reads anything share the look-ups of their
executions, whatever they select. So no result is older than if each had looked everything up itself, and nothing is
kept for those that ask later or for another event.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Hashable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from graph import Graph
from graph.archive.usage import Usage
from graph.feed.updates import Change
from resolvers.context import Context
from resolvers.shared_context import SharedContext

AT_ONCE = 4  # executions of one holder
STARTS = 8  # executions that start in one iteration of the event loop; each takes up to a millisecond of its own
SHARED_USAGE = "live events"


class JoinedContexts:
    """Contexts whose look-ups are shared: those that can still be joined, because no joined one has read anything."""

    def __init__(self) -> None:
        self._contexts: WeakValueDictionary[Hashable, Context] = WeakValueDictionary()
        self._closing: list[Hashable] = []

    def join(self, context: Context, event: Change) -> Hashable:
        """Let a context use what all contexts of its viewer look up that join for the event. Return the key to `close`.

        `forget` of the context ends that.
        """
        key = context.graph, context.viewer_id, event.number
        shared = self._contexts.get(key)
        if shared is None:
            shared = self._contexts[key] = Context(context.graph, context.viewer, context.issue_token)
        context.follow(shared)
        return key

    def close(self, key: Hashable) -> None:
        """Note that a look-up begins: no execution can join after this iteration of the event loop."""
        if not self._closing:
            asyncio.get_running_loop().call_soon(self._remove)
        self._closing.append(key)

    def without_viewer(self, graph: Graph, event: Change) -> Context:
        """Return the context of all executions that have no viewer and ask for the event now."""
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
    """Lets each holder run `AT_ONCE` executions at a time, and all together start `STARTS` in one iteration."""

    def __init__(self) -> None:
        self._of_holders: WeakValueDictionary[Hashable, asyncio.Semaphore] = WeakValueDictionary()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._started = 0

    @asynccontextmanager
    async def turn(self, holder: Hashable) -> AsyncGenerator[None]:
        """Wait for the holder's turn and start the block when few others start."""
        turns = self._of_holders.get(holder)
        if turns is None:
            turns = self._of_holders[holder] = asyncio.Semaphore(AT_ONCE)
        async with turns:
            await self.start()
            yield

    async def start(self) -> None:
        """Wait until the next execution may start: the event loop serves others between many of them."""
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


class LiveEvents:
    """The look-ups that executions of events share in a process, and their turns."""

    def __init__(self) -> None:
        self.reads = JoinedContexts()
        self.turns = EventTurns()


def shared_usage() -> Usage:
    """Return the usage of the archive of an execution for several viewers, which have no part in it."""
    return Usage(SHARED_USAGE, anonymous=False)
