"""Ending tasks for certain."""

import asyncio
from collections.abc import Iterable
from typing import Any

RETRY_SECONDS = 0.1


async def end(tasks: Iterable["asyncio.Task[Any]"]) -> None:
    """Cancel tasks and wait until they are done.

    One cancellation is not enough: Python 3.11's `wait_for`, through which the store's client sends, loses one that
    arrives as the sending finishes. So it is repeated until the task is done.
    """
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=RETRY_SECONDS)
