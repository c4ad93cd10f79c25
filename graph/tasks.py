"""Reliable cancellation of tasks."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")

RETRY_SECONDS = 0.1


async def end(tasks: Iterable["asyncio.Task[Any]"]) -> None:
    """Cancel tasks and wait until they are done.

    The cancellation is repeated: `asyncio.wait_for` of Python 3.11, which redis-py uses, can lose a cancellation that
    arrives while the awaited call finishes.
    """
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=RETRY_SECONDS)


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, even if the caller is cancelled. The cancellation is raised afterwards.

    Return the result of the coroutine. Raises its error, unless the caller was cancelled.
    """
    task = asyncio.get_running_loop().create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return task.result()
    if not task.cancelled():
        task.exception()  # mark as retrieved
    raise cancelled
