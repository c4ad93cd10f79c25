"""Reads that serve all callers who ask for the same data at the same time: one query in flight for each public page.

A read waits for a connection on behalf of the caller who asked first. Until then, only operations of the same caller
share it, so that no operation waits for the connections of another caller. Once the read has its connection, it serves
all callers. It runs in a separate task, so that the cancellation of one caller does not affect the others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

from graph.archive.usage import USAGE, Usage, used_by

T = TypeVar("T")

Key: TypeAlias = tuple[Hashable, str | None]
"""The data that is read, and the caller on whose behalf the read waits for a connection; None once it has one."""


class SharedRead(NamedTuple):
    """The task of a read, and its usage so far, or None for a read of the system."""

    task: "asyncio.Task[Any]"
    usage: Usage | None


class SharedReads:
    """The archive reads of this process that callers share. `unfinished` has those that are running."""

    def __init__(self) -> None:
        self.unfinished: dict[Key, SharedRead] = {}

    async def read(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `work`, which may have begun earlier for another caller with the same key.

        The rows are charged to every operation that gets the result. The statements are charged to the operation whose
        call begins the read, even if the call is cancelled. Raises what `work` raises.
        """
        own = USAGE.get()
        found = self.unfinished.get((key, None)) or (self.unfinished.get((key, own.caller)) if own else None)
        if found is None:
            found = self._start(key, work, own)
        elif own is not None:
            result: T = await asyncio.shield(found.task)
            own.rows += found.usage.rows if found.usage else 0
            return result
        begun: T = await asyncio.shield(found.task)
        return begun

    def _start(self, key: Hashable, work: Callable[[], Awaitable[Any]], own: Usage | None) -> SharedRead:
        usage = None
        if own is not None:
            begun = partial(self._has_connection, key, own.caller)
            usage = Usage(own.caller, anonymous=own.anonymous, begun=begun)
            own.hold()
        task = asyncio.get_running_loop().create_task(self._run(key, work, usage))
        read = self.unfinished[key, own.caller if own else None] = SharedRead(task, usage)
        task.add_done_callback(partial(self._finish, key, read, own))
        return read

    async def _run(self, key: Hashable, work: Callable[[], Awaitable[T]], usage: Usage | None) -> T:
        other = self.unfinished.get((key, None))  # of a caller who asked in the same iteration of the event loop
        if usage is not None and other is not None:
            result: T = await asyncio.shield(other.task)
            usage.rows += other.usage.rows if other.usage else 0
            return result
        with used_by(usage):
            return await work()

    def _has_connection(self, key: Hashable, caller: str) -> None:
        read = self.unfinished.pop((key, caller), None)
        if read is not None:
            self.unfinished[key, None] = read

    def _finish(self, key: Hashable, read: SharedRead, own: Usage | None, task: "asyncio.Task[Any]") -> None:
        for place in ((key, None), (key, own.caller if own else None)):
            if self.unfinished.get(place) is read:
                del self.unfinished[place]
        if not task.cancelled():
            task.exception()  # mark as retrieved: all callers may have been cancelled
        if own is not None and read.usage is not None:
            own.add(read.usage)
            own.end_transaction()
