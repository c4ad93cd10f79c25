"""The gate before the archive's connections: it decides who gets one next, so that no caller can take them from others.

- The system itself (archiver, projections, eraser) may use all connections, and some are reserved for it.
- A caller uses two at most, and all anonymous callers together half of them.
- Of the callers who wait and may have one, the one who has used the connections least lately comes first: who searches
  all the time waits for those who read one page. This is fair queueing by time used, as in a CPU scheduler, with a
  memory that fades.
"""

import asyncio
import math
from collections import Counter, deque
from collections.abc import Callable
from typing import NamedTuple

from cachetools import LRUCache

from graph.archive.usage import USAGE, Usage
from graph.errors import ArchiveUnavailable

RESERVED = 2
"""The connections that only the system uses."""
EACH = 2
"""The maximum number of connections of one caller."""
HALF_LIFE_SECONDS = 10.0
"""The time in which half of what a caller has used is forgotten."""
MAX_CALLERS = 10_000
"""The number of callers whose use is remembered."""

SYSTEM = ""


class Used(NamedTuple):
    """The seconds for which a caller has held connections, as of the time `at`."""

    seconds: float
    at: float

    def as_of(self, now: float) -> float:
        """Return the seconds that count at a later time."""
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
        """Return a function that gives the connection back, when it is the turn of the operation that runs.

        Raises ArchiveUnavailable if others have them for `seconds`.
        """
        usage = USAGE.get()
        caller, anonymous = _caller(usage)
        loop = asyncio.get_running_loop()
        if self._may_enter(caller, anonymous):  # nobody who waits may enter, or would have been let in
            self._take(caller, anonymous)
        else:
            turn: asyncio.Future[None] = loop.create_future()
            self._waiting.setdefault((caller, anonymous), deque()).append(turn)
            try:
                async with asyncio.timeout(seconds):
                    await turn
            except BaseException as error:
                self._abandon(caller, anonymous, turn)
                if isinstance(error, TimeoutError):
                    raise ArchiveUnavailable(f"all connections were in use for {seconds:g} seconds") from None
                raise
        entered = loop.time()
        return lambda: self._leave(caller, anonymous, loop.time() - entered)

    @property
    def waiting(self) -> int:
        """The number of transactions that wait."""
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
            now = asyncio.get_running_loop().time()
            self._used[caller] = Used(self._use_of(caller, now) + seconds, now)
        self._grant()

    def _grant(self) -> None:
        """Give free connections to those who wait."""
        while True:
            now = asyncio.get_running_loop().time()
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
        """Return the seconds that a caller has used lately. The system comes before all callers."""
        if caller == SYSTEM:
            return -1.0
        used = self._used.get(caller)
        return 0.0 if used is None else used.as_of(now)

    def _abandon(self, caller: str, anonymous: bool, turn: "asyncio.Future[None]") -> None:
        """Stop to wait. A turn that came in the same iteration of the event loop is passed on."""
        waiting = self._waiting.get((caller, anonymous), deque())
        if turn in waiting:
            waiting.remove(turn)
            if not waiting:
                del self._waiting[caller, anonymous]
        elif turn.done() and not turn.cancelled():
            self._leave(caller, anonymous, 0.0)


def _caller(usage: Usage | None) -> tuple[str, bool]:
    return (SYSTEM, False) if usage is None else (usage.caller, usage.anonymous)
