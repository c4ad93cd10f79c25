"""Turns: how many operations of one holder run at once; further ones wait in order, and too many are refused."""

import asyncio
from collections import deque
from collections.abc import Hashable

from server.errors import RateLimited

MAX_WAITING = 50  # operations of one holder, beside those that run


class Turns:
    """Lets each holder run at most `most` operations at once in this process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._running: dict[Hashable, int] = {}
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}

    def begin_now(self, holder: Hashable) -> bool:
        """Take a turn, which `end` gives back, if there is one; return whether there was."""
        running = self._running.get(holder, 0)
        if running >= self._most:
            return False
        self._running[holder] = running + 1
        return True

    async def begin(self, holder: Hashable) -> None:
        """Wait for a turn, which `end` gives back. Raises RateLimited if too many operations wait already."""
        if self.begin_now(holder):
            return
        waiting = self._waiting.setdefault(holder, deque())
        if len(waiting) >= MAX_WAITING:
            raise RateLimited(
                f"{self._most} of your operations are running and {MAX_WAITING} are waiting. Send fewer at once.",
                1,
                "turns",
            )
        turn = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.end(holder)  # it was this one's turn at the moment it was cancelled
            elif turn in waiting:
                waiting.remove(turn)
                self._tidy(holder)
            raise

    def end(self, holder: Hashable) -> None:
        """Give a turn back, to the operation that has waited longest."""
        waiting = self._waiting.get(holder, ())
        while waiting:
            turn = waiting.popleft()
            self._tidy(holder)
            if not turn.done():
                turn.set_result(None)
                return
        self._running[holder] -= 1
        if not self._running[holder]:
            del self._running[holder]

    def _tidy(self, holder: Hashable) -> None:
        if not self._waiting[holder]:
            del self._waiting[holder]
