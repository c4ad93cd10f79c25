"""Turns: each holder runs a limited number of operations at once; further operations wait in order."""

import asyncio
from collections import deque
from collections.abc import Hashable

from server.errors import RateLimited

MAX_WAITING = 50  # operations of one holder, in addition to the running ones


class Turns:
    """Limits each holder to `most` concurrent operations in this process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._running: dict[Hashable, int] = {}
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}

    def try_acquire(self, holder: Hashable) -> bool:
        """Take a turn if one is free; return False otherwise. `release` gives it back."""
        running = self._running.get(holder, 0)
        if running >= self._most:
            return False
        self._running[holder] = running + 1
        return True

    async def acquire(self, holder: Hashable) -> None:
        """Wait for a turn. `release` gives it back. Raises RateLimited if too many operations wait already."""
        if self.try_acquire(holder):
            return
        waiting = self._waiting.setdefault(holder, deque())
        if len(waiting) >= MAX_WAITING:
            raise RateLimited(
                f"{self._most} of your operations are running and {MAX_WAITING} are waiting, which is the limit. "
                "Send fewer at the same time.",
                1,
                "turns",
            )
        turn = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(holder)  # the turn came in the same event-loop iteration as the cancellation
            elif turn in waiting:
                waiting.remove(turn)
                self._remove_if_empty(holder)
            raise

    def release(self, holder: Hashable) -> None:
        """Pass the turn to the operation that has waited longest, or free it."""
        waiting = self._waiting.get(holder, ())
        while waiting:
            turn = waiting.popleft()
            self._remove_if_empty(holder)
            if not turn.done():
                turn.set_result(None)
                return
        self._running[holder] -= 1
        if not self._running[holder]:
            del self._running[holder]

    def _remove_if_empty(self, holder: Hashable) -> None:
        if not self._waiting[holder]:
            del self._waiting[holder]
