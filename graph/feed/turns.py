"""Fairness among replays: few work at a time, in turn, and all together take about half of the processor.

A replay is as fast as its client takes events, so without this a few of them would keep a process busy.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Hashable

AT_ONCE = 8
AT_ONCE_PER_HOLDER = 2
TURN_SECONDS = 1.0  # until others are let in before a replay goes on
IDLE_SECONDS = 0.1  # that a client may take over one event while others wait
WORK_SECONDS = 0.005  # until all replays rest as long as they have worked
MAX_REST_SECONDS = 0.01


class Turns:
    """Lets replays work: `AT_ONCE` in the process, `AT_ONCE_PER_HOLDER` of one holder, first come, first served.

    Holders who have several replays waiting take turns. Costs a few microseconds for each step of a replay.
    """

    def __init__(self) -> None:
        self._working: set[Turn] = set()
        self._of_holder: Counter[Hashable] = Counter()
        self._waiting: dict[Hashable, deque[tuple[Turn, asyncio.Future[None]]]] = {}
        self._check: asyncio.TimerHandle | None = None
        self._working_since = 0.0
        self._last_step = 0.0
        self._rest_until = 0.0

    def __len__(self) -> int:
        """Return how many replays work or wait."""
        return len(self._working) + sum(map(len, self._waiting.values()))

    async def enter(self, turn: "Turn") -> None:
        """Wait until the turn may work, unless it does already."""
        if turn in self._working:
            return
        loop = asyncio.get_running_loop()
        waiter: tuple[Turn, asyncio.Future[None]] = (turn, loop.create_future())
        self._waiting.setdefault(turn.holder, deque()).append(waiter)
        self._admit(loop.time())
        try:
            await waiter[1]
        except asyncio.CancelledError:
            self._forget(waiter)
            raise

    def leave(self, turn: "Turn") -> None:
        """Make room for others, if the turn works."""
        if turn in self._working:
            self._stop(turn)
            self._admit(asyncio.get_running_loop().time())

    def pause(self) -> float:
        """Return for how many seconds a replay has to rest before its next step."""
        now = asyncio.get_running_loop().time()
        if now - self._last_step > IDLE_SECONDS:
            self._working_since = now
        worked = now - self._working_since
        if worked >= WORK_SECONDS:
            self._rest_until = self._working_since = now + min(worked, MAX_REST_SECONDS)
        self._last_step = max(now, self._rest_until)
        return max(0.0, self._rest_until - now)

    def _admit(self, now: float) -> None:
        for holder in list(self._waiting):
            if len(self._working) >= AT_ONCE:
                break
            queue = self._waiting.pop(holder)
            while queue and len(self._working) < AT_ONCE and self._of_holder[holder] < AT_ONCE_PER_HOLDER:
                turn, admitted = queue.popleft()
                self._working.add(turn)
                self._of_holder[holder] += 1
                turn.began = turn.last_step = now
                if not admitted.done():
                    admitted.set_result(None)
            if queue:
                self._waiting[holder] = queue
        if self._waiting and self._check is None:
            self._check = asyncio.get_running_loop().call_later(IDLE_SECONDS / 2, self._revoke)

    def _revoke(self) -> None:
        """Take the turns back of those who have had enough, or whose clients take nothing, while others wait."""
        self._check = None
        now = asyncio.get_running_loop().time()
        for turn in list(self._working):
            if now - turn.began > TURN_SECONDS or now - turn.last_step > IDLE_SECONDS:
                self._stop(turn)
        self._admit(now)

    def _stop(self, turn: "Turn") -> None:
        self._working.discard(turn)
        self._of_holder[turn.holder] -= 1
        if not self._of_holder[turn.holder]:
            del self._of_holder[turn.holder]

    def _forget(self, waiter: "tuple[Turn, asyncio.Future[None]]") -> None:
        queue = self._waiting.get(waiter[0].holder)
        if queue and waiter in queue:
            queue.remove(waiter)
            if not queue:
                del self._waiting[waiter[0].holder]


class Turn:
    """One replay's place among the others."""

    __slots__ = ("_queues", "_turns", "began", "holder", "last_step")

    def __init__(self, turns: Turns, holder: Hashable) -> None:
        self.holder = holder
        self.began = self.last_step = 0.0
        self._turns = turns
        self._queues = False

    async def step(self) -> None:
        """Wait before the next piece of work, so that everything else has its share of the processor."""
        if self._queues:
            await self._turns.enter(self)
        await asyncio.sleep(self._turns.pause())
        self.last_step = asyncio.get_running_loop().time()

    def queue(self) -> None:
        """Compete for a turn from the next step on: this is a long replay."""
        self._queues = True

    def end(self) -> None:
        """Make room for others."""
        self._turns.leave(self)
