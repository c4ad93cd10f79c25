"""A gate where the processes of a test wait before every call, so that the test chooses how they interleave and die."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, cast

MOST_TICKS = 1000


class Outage(Enum):
    """When a statement of the archive fails: before the database has executed it, or after it has."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(eq=False)
class Turn:
    """A command for the store or a statement for the archive that waits for its turn.

    `transaction` is set if the statement writes: it can only run while no other transaction has written.
    """

    process: str
    transaction: object | None = None
    allowed: asyncio.Event = field(default_factory=asyncio.Event)
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    killed: asyncio.Event = field(default_factory=asyncio.Event)
    fatal: bool = False
    outage: Outage | None = None


class Gate:
    """Lets the calls of several processes run one at a time, in the order that the test chooses.

    `writer` is the transaction that holds the write lock of the archive. For each process, `outages` has the number of
    its next statements that fail, and how they fail. `dead` has the processes that are being killed.
    """

    def __init__(self) -> None:
        self.waiting: list[Turn] = []
        self.writer: object | None = None
        self.outages: dict[str, tuple[int, Outage]] = {}
        self.dead: set[str] = set()
        self.steps = 0
        self._fatal: list[Turn] = []

    def ready(self) -> list[Turn]:
        """Return the turns that can run now. The others wait for the write lock of the archive."""
        return [turn for turn in self.waiting if turn.transaction is None or self.writer in (None, turn.transaction)]

    def blocked(self) -> list[Turn]:
        """Return the turns that wait for the write lock of the archive."""
        return [turn for turn in self.waiting if turn not in self.ready()]

    @asynccontextmanager
    async def turn(self, process: str, transaction: object | None = None) -> AsyncIterator[Turn]:
        """Wait for a turn for one call. A fatal turn ends only when its process is killed."""
        turn = Turn(process, transaction)
        if process in self.dead:
            raise asyncio.CancelledError
        self.waiting.append(turn)
        try:
            await turn.allowed.wait()
        except asyncio.CancelledError:
            if turn in self.waiting:
                self.waiting.remove(turn)
            raise
        if turn.killed.is_set():
            raise asyncio.CancelledError
        try:
            yield turn
        finally:
            turn.finished.set()
        if turn.fatal:
            self._fatal.append(turn)
            await turn.killed.wait()
            raise asyncio.CancelledError

    def kill(self, process: str) -> None:
        """Cancel a process's calls, even in tasks that would continue after a cancellation, and refuse new ones."""
        self.dead.add(process)
        for turn in [turn for turn in (*self.waiting, *self._fatal) if turn.process == process]:
            turn.killed.set()
            turn.allowed.set()
        self.waiting = [turn for turn in self.waiting if turn.process != process]
        self._fatal = [turn for turn in self._fatal if turn.process != process]

    def next_outage(self, process: str) -> Outage | None:
        """Return how the next statement of a process fails, or None."""
        left, outage = self.outages.get(process, (0, Outage.BEFORE))
        if not left:
            return None
        self.outages[process] = left - 1, outage
        return outage

    async def run_until_blocked(self) -> None:
        """Run all tasks until all of them wait for the gate and no callback is left."""
        ready = cast(Any, asyncio.get_running_loop())._ready
        for _ in range(MOST_TICKS):
            await asyncio.sleep(0)
            if not ready:
                return
        raise AssertionError("a task never waits")

    async def admit(self, turn: Turn, *, fatal: bool = False, outage: Outage | None = None) -> None:
        """Run one call and wait for its reply. If it is fatal, its process never sees the reply."""
        self.steps += 1
        turn.fatal = fatal
        turn.outage = outage
        self.waiting.remove(turn)
        turn.allowed.set()
        await turn.finished.wait()
        await self.run_until_blocked()
