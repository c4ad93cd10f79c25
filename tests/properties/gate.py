"""A store whose every call waits for its turn, so that a test decides how processes interleave and where they die."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from graph.store import Command, Store

TICKS = 12


@dataclass(eq=False)
class Turn:
    """A store call that waits to be let through."""

    process: str
    commands: Sequence[Command]
    allowed: asyncio.Event = field(default_factory=asyncio.Event)
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    fatal: bool = False


class Gate:
    """Lets the calls of several processes through one at a time, in the order that the test says."""

    def __init__(self) -> None:
        self.waiting: list[Turn] = []

    async def settle(self) -> None:
        """Let everything run that does not wait for the gate."""
        for _ in range(TICKS):
            await asyncio.sleep(0)

    async def let_through(self, turn: Turn, *, fatal: bool = False) -> None:
        """Let one call through and wait for its reply; if fatal, its process never sees the reply."""
        turn.fatal = fatal
        self.waiting.remove(turn)
        turn.allowed.set()
        await turn.finished.wait()
        await self.settle()


class GatedStore(Store):
    """A store for one process, behind the gate."""

    def __init__(self, url: str, gate: Gate, process: str) -> None:
        super().__init__(url, single_slot=True)
        self._gate = gate
        self._process = process

    async def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        turn = Turn(self._process, commands)
        self._gate.waiting.append(turn)
        try:
            await turn.allowed.wait()
        except asyncio.CancelledError:
            if turn in self._gate.waiting:
                self._gate.waiting.remove(turn)
            raise
        try:
            replies = await super()._exchange(commands)
        finally:
            turn.finished.set()
        if turn.fatal:
            await asyncio.Event().wait()
        return replies
