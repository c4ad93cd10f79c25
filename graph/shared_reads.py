"""Reads that serve all who ask for the same at the moment: one query in flight for each public page.

A read runs in a task of its own, as an operation of a caller of its own, so that nobody waits for the connections of
the one who asked first, and who is cancelled takes nothing from the others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

from graph.archive.usage import USAGE, Usage, used_by

T = TypeVar("T")

CALLER = "public pages"


class SharedReads:
    """The reads that run in this process, by key. Whoever asks for a key meanwhile gets the same result.

    `running` holds their tasks, and what they have read so far.
    """

    def __init__(self) -> None:
        self.running: dict[Hashable, tuple[asyncio.Task[Any], Usage]] = {}

    async def read(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `work`, which may have begun earlier for another caller with the same key.

        The rows are charged to every operation that gets the result, the statements to the one whose call begins the
        read, even if it is cancelled. Raises what `work` raises.
        """
        running, own = self.running.get(key), USAGE.get()
        if running is None:
            usage = Usage(CALLER, anonymous=False)
            task = asyncio.get_running_loop().create_task(_run(work, usage))
            self.running[key] = (task, usage)
            if own is not None:
                own.begin_transaction()
            task.add_done_callback(lambda done: self._finish(key, done, own, usage))
            return await asyncio.shield(task)
        task, usage = running
        result: T = await asyncio.shield(task)
        if own is not None:
            own.rows += usage.rows
        return result

    def _finish(self, key: Hashable, task: "asyncio.Task[Any]", own: Usage | None, usage: Usage) -> None:
        del self.running[key]
        if not task.cancelled():
            task.exception()  # mark as retrieved: all callers may have been cancelled
        if own is not None:
            own.rows += usage.rows
            own.statements += usage.statements
            own.end_transaction()


async def _run(work: Callable[[], Awaitable[T]], usage: Usage) -> T:
    with used_by(usage):
        return await work()
