"""Fair scheduling of replays: a few run at a time, in turn, and together they use about half of the processor.

A replay reads as fast as its client. Without limits, a few fast clients would keep a process busy.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Hashable

MAX_RUNNING = 8
MAX_RUNNING_PER_HOLDER = 2
TURN_SECONDS = 1.0  # the longest turn while other replays wait
IDLE_SECONDS = 0.1  # a turn ends after this time without a step, while other replays wait
WORK_SECONDS = 0.005  # after this time of work, all replays pause for the same time
MAX_PAUSE_SECONDS = 0.01


class ReplayTurns:
    """Limits the running replays to `MAX_RUNNING` per process and `MAX_RUNNING_PER_HOLDER` per holder.

    A holder is the user or client that owns replays. Holders with waiting replays take turns; the replays of
    one holder run first come, first served. Scheduling a step of a replay costs a few microseconds.
    """

    def __init__(self) -> None:
        self._running: set[Turn] = set()
        self._running_of: Counter[Hashable] = Counter()
        self._waiting: dict[Hashable, deque[tuple[Turn, asyncio.Future[None]]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._working_since = 0.0
        self._last_step = 0.0
        self._paused_until = 0.0

    def __len__(self) -> int:
        """Return the number of running and waiting replays."""
        return len(self._running) + sum(map(len, self._waiting.values()))

    async def enter(self, turn: "Turn") -> None:
        """Wait until the replay may run. Return immediately if it already runs."""
        if turn in self._running:
            return
        loop = asyncio.get_running_loop()
        waiter: tuple[Turn, asyncio.Future[None]] = (turn, loop.create_future())
        self._waiting.setdefault(turn.holder, deque()).append(waiter)
        self._start_waiting(loop.time())
        try:
            await waiter[1]
        except asyncio.CancelledError:
            self._forget(waiter)
            raise

    def leave(self, turn: "Turn") -> None:
        """End the turn of a replay, if it has one, and start the next."""
        if turn in self._running:
            self._stop(turn)
            self._start_waiting(asyncio.get_running_loop().time())

    def pause(self) -> float:
        """Return the seconds that a replay must pause before its next step."""
        now = asyncio.get_running_loop().time()
        if now - self._last_step > IDLE_SECONDS:
            self._working_since = now
        worked = now - self._working_since
        if worked >= WORK_SECONDS:
            self._paused_until = self._working_since = now + min(worked, MAX_PAUSE_SECONDS)
        self._last_step = max(now, self._paused_until)
        return max(0.0, self._paused_until - now)

    def _start_waiting(self, now: float) -> None:
        for holder in list(self._waiting):
            if len(self._running) >= MAX_RUNNING:
                break
            queue = self._waiting.pop(holder)
            while queue and len(self._running) < MAX_RUNNING and self._running_of[holder] < MAX_RUNNING_PER_HOLDER:
                turn, started = queue.popleft()
                self._running.add(turn)
                self._running_of[holder] += 1
                turn.began = turn.last_step = now
                if not started.done():
                    started.set_result(None)
            if queue:
                self._waiting[holder] = queue
        if self._waiting and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(IDLE_SECONDS / 2, self._revoke)

    def _revoke(self) -> None:
        """End turns that have expired or are unused while other replays wait."""
        self._timer = None
        now = asyncio.get_running_loop().time()
        for turn in list(self._running):
            if now - turn.began > TURN_SECONDS or now - turn.last_step > IDLE_SECONDS:
                self._stop(turn)
        self._start_waiting(now)

    def _stop(self, turn: "Turn") -> None:
        self._running.discard(turn)
        self._running_of[turn.holder] -= 1
        if not self._running_of[turn.holder]:
            del self._running_of[turn.holder]

    def _forget(self, waiter: "tuple[Turn, asyncio.Future[None]]") -> None:
        queue = self._waiting.get(waiter[0].holder)
        if queue and waiter in queue:
            queue.remove(waiter)
            if not queue:
                del self._waiting[waiter[0].holder]


class Turn:
    """The turn of one replay. Until `queue` is called, the replay does not queue, and only pauses between steps."""

    __slots__ = ("_queues", "_turns", "began", "holder", "last_step")

    def __init__(self, turns: ReplayTurns, holder: Hashable) -> None:
        self.holder = holder
        self.began = self.last_step = 0.0
        self._turns = turns
        self._queues = False

    async def step(self) -> None:
        """Wait before the next piece of work, so that other tasks can run."""
        if self._queues:
            await self._turns.enter(self)
        await asyncio.sleep(self._turns.pause())
        self.last_step = asyncio.get_running_loop().time()

    def queue(self) -> None:
        """Make the following steps wait for a turn, because the replay is long."""
        self._queues = True

    def end(self) -> None:
        """Give up the turn, if there is one, because the replay has ended."""
        self._turns.leave(self)
