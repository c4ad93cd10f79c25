"""The gate to the archive's connections: decides which caller gets one next, so that no caller can starve the others.

- The system itself (archiver, projections, eraser) may use all connections, and two are reserved for it.
- Each caller may use two connections, and all anonymous callers together may use half of all connections.
- Of the waiting callers within these limits, the one that has recently used the connections for the shortest time comes
  first: a caller that searches constantly waits for callers that read a single page. This is fair queueing by time
  used, as in a CPU scheduler, with exponential decay.
"""

import asyncio
import math
from collections import Counter, deque
from collections.abc import Callable
from time import monotonic
from typing import NamedTuple

from cachetools import LRUCache

from graph.archive.usage import USAGE, Usage
from graph.errors import ArchiveUnavailable

RESERVED = 2
"""The number of connections that only the system uses."""
EACH = 2
"""The maximum number of connections of one caller."""
HALF_LIFE_SECONDS = 10.0
"""The half-life of a caller's use: after this time, past use counts half as much."""
MAX_CALLERS = 10_000
"""The number of callers whose use is remembered."""

SYSTEM = ""


class Used(NamedTuple):
    """The seconds for which a caller has held connections, as of the time `at`."""

    seconds: float
    at: float

    def as_of(self, now: float) -> float:
        """Return the seconds that still count at a later time."""
        return self.seconds * math.pow(0.5, (now - self.at) / HALF_LIFE_SECONDS)


class Gate:
    """Hands out `slots` connections, in one event loop."""

    def __init__(self, slots: int, *, reserved: int = RESERVED, each: int = EACH) -> None:
        self._slots = slots
        self._shared = slots - reserved
        self._each = each
        self._anonymous_share = slots // 2
        self._held: Counter[str] = Counter()
        self._anonymous = 0
        self._used: LRUCache[str, Used] = LRUCache(MAX_CALLERS)
        self._waiting: dict[tuple[str, bool], deque[asyncio.Future[None]]] = {}

    async def enter(self, seconds: float) -> Callable[[], None]:
        """Wait for a connection for the running operation, and return the function that releases it.

        Raises ArchiveUnavailable if the operation gets no connection within `seconds`.
        """
        usage = USAGE.get()
        caller, anonymous = _caller(usage)
        if self._may_enter(caller, anonymous):  # no waiting caller is overtaken: all that may enter have been admitted
            self._take(caller, anonymous)
        else:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.setdefault((caller, anonymous), deque()).append(turn)
            try:
                async with asyncio.timeout(seconds):
                    await turn
            except BaseException as error:
                self._abandon(caller, anonymous, turn)
                if isinstance(error, TimeoutError):
                    raise ArchiveUnavailable(f"all connections were in use for {seconds:g} seconds") from None
                raise
        entered = monotonic()  # uvloop's clock counts whole milliseconds, and most transactions take less
        return lambda: self._leave(caller, anonymous, monotonic() - entered)

    @property
    def waiting(self) -> int:
        """The number of waiting transactions."""
        return sum(map(len, self._waiting.values()))

    def _may_enter(self, caller: str, anonymous: bool) -> bool:
        taken = self._held.total()
        if caller == SYSTEM:
            return taken < self._slots
        if taken >= self._slots or taken - self._held[SYSTEM] >= self._shared or self._held[caller] >= self._each:
            return False
        return not anonymous or self._anonymous < self._anonymous_share

    def _take(self, caller: str, anonymous: bool) -> None:
        self._held[caller] += 1
        self._anonymous += anonymous

    def _leave(self, caller: str, anonymous: bool, seconds: float) -> None:
        self._held[caller] -= 1
        if not self._held[caller]:
            del self._held[caller]
        self._anonymous -= anonymous
        if caller != SYSTEM:
            now = monotonic()
            self._used[caller] = Used(self._use_of(caller, now) + seconds, now)
        self._grant()

    def _grant(self) -> None:
        """Assign free connections to waiting callers."""
        while True:
            now = monotonic()
            next_ = min(
                (each for each in self._waiting if self._may_enter(*each)),
                key=lambda each: self._use_of(each[0], now),
                default=None,
            )
            if next_ is None:
                return
            waiting = self._waiting[next_]
            turn = waiting.popleft()
            if not waiting:
                del self._waiting[next_]
            if not turn.done():  # otherwise the caller was cancelled
                self._take(*next_)
                turn.set_result(None)

    def _use_of(self, caller: str, now: float) -> float:
        """Return the seconds that a caller has recently used. The system comes before all callers."""
        if caller == SYSTEM:
            return -1.0
        used = self._used.get(caller)
        return 0.0 if used is None else used.as_of(now)

    def _abandon(self, caller: str, anonymous: bool, turn: "asyncio.Future[None]") -> None:
        """Stop waiting. Pass on a turn that was granted in the same iteration of the event loop."""
        waiting = self._waiting.get((caller, anonymous), deque())
        if turn in waiting:
            waiting.remove(turn)
            if not waiting:
                del self._waiting[caller, anonymous]
        elif turn.done() and not turn.cancelled():
            self._leave(caller, anonymous, 0.0)


def _caller(usage: Usage | None) -> tuple[str, bool]:
    return (SYSTEM, False) if usage is None else (usage.caller, usage.anonymous)
