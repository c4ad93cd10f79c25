"""A look-up that never ends, and an execution that is cancelled while it is at work."""

import asyncio
from typing import Any

import pytest

from tests.support.graph_worlds import PATIENCE


class Endless:
    """A look-up that never ends by itself; it tells when it was begun, and how it ended."""

    def __init__(self) -> None:
        self.begun, self.ended = asyncio.Event(), asyncio.Event()
        self.endings: list[str] = []

    async def __call__(self, *_: Any) -> Any:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            self.endings.append("cancelled")
            self.ended.set()
            raise


async def cancel_when_begun(execution: Any, begun: asyncio.Event) -> None:
    """Run an execution until a resolver is at work, then cancel it."""
    task = asyncio.ensure_future(execution)
    async with asyncio.timeout(PATIENCE):
        await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
