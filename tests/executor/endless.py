"""A look-up that never finishes, and a function that cancels an execution while it runs."""

import asyncio
from typing import Any

import pytest

from tests.support.graph_worlds import PATIENCE


class Endless:
    """A look-up that never finishes. It records when it started and how it ended."""

    def __init__(self) -> None:
        self.started, self.ended = asyncio.Event(), asyncio.Event()
        self.endings: list[str] = []

    async def __call__(self, *_: Any) -> Any:
        self.started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            self.endings.append("cancelled")
            self.ended.set()
            raise


async def cancel_when_started(execution: Any, started: asyncio.Event) -> None:
    """Run an execution until a resolver has started, then cancel it."""
    task = asyncio.ensure_future(execution)
    async with asyncio.timeout(PATIENCE):
        await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
