"""Streams that combine updates: of one viewer's notifications, and of one thread.

Updates wait until they are due: 50 ms after the first, so that the process that committed the event has time to project
it, and at least a second after the previous updates were sent. However many updates are waiting, the store is then read
once for all of them. Updates are sent in the order of their numbers: a client that resumes after any of them gets all
updates that it missed.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Coroutine, Hashable
from contextlib import aclosing
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from graph.errors import ArchiveUnavailable, StoreUnavailable
from graph.feed.updates import Change, Checkpoint, Gap
from graph.tasks import end

SETTLE_SECONDS = 0.05
SEND_SECONDS = 1.0
RETRY_SECONDS = 0.5
MAX_WAITING = 1000
EARLY_SECONDS = 0.01
LATE_SECONDS = 0.05
RECHECK_SECONDS = 1.5  # an update waits for up to a second

N = TypeVar("N", bound=Change)
N_contra = TypeVar("N_contra", bound=Change, contravariant=True)
R = TypeVar("R", bound=Change)


@dataclass(frozen=True, slots=True)
class Alarm:
    """An event-loop time, and a future that is done at that time."""

    at: float
    rings: "asyncio.Future[None]"


class Waiting(Protocol[N_contra]):
    """Updates that are waiting to be sent."""

    def add(self, update: N_contra) -> None:
        """Add an update."""

    def __len__(self) -> int:
        """Return the number of updates to send."""

    def key(self) -> Hashable:
        """Return a value that is the same for two streams if they have the same updates to send."""


W = TypeVar("W", bound=Waiting[Any])


class StreamReads(ABC, Generic[N, R, W]):
    """Alarms and reads that streams share if they have the same subject, such as a viewer or a post.

    Streams that are due at nearly the same time wait for the same alarm. Streams that then ask for the same updates in
    one iteration of the event loop share one read and its results. The read begins in that iteration. The executions of
    equal operations are therefore shared, too. Requires a running event loop.
    """

    def __init__(self) -> None:
        self._alarms: dict[int, list[Alarm]] = {}
        self._reads: dict[Hashable, asyncio.Task[list[R]]] = {}

    @abstractmethod
    def waiting(self) -> W:
        """Return an empty collection for waiting updates."""

    @abstractmethod
    async def load(self, subject: int, waiting: W) -> list[R]:
        """Return the updates to send, in the order of their numbers."""

    async def read(self, subject: int, waiting: W) -> list[R]:
        """Return the result of `load`, which may be shared with other streams."""
        key = subject, waiting.key()
        task = self._reads.get(key)
        if task is None:
            loop = asyncio.get_running_loop()
            # in its own context: the read belongs to all streams that ask, not only to the one that starts it
            task = self._reads[key] = loop.create_task(self.load(subject, waiting), context=Context())
            task.add_done_callback(_retrieve)
            loop.call_soon(partial(self._reads.pop, key))
        return await asyncio.shield(task)

    async def recheck(self, changes: list[R]) -> list[R]:
        """Return the updates that can still be sent, some time after they were read."""
        return changes

    def alarm(self, subject: int, at: float) -> Alarm:
        """Return an alarm for a stream, at most 10 ms earlier and at most 50 ms later than `at`."""
        alarms = self._alarms.setdefault(subject, [])
        for alarm in alarms:
            if at - EARLY_SECONDS <= alarm.at <= at + LATE_SECONDS:
                return alarm
        loop = asyncio.get_running_loop()
        alarm = Alarm(at, loop.create_future())
        alarms.append(alarm)
        loop.call_at(at, self._ring, subject, alarm)
        return alarm

    def _ring(self, subject: int, alarm: Alarm) -> None:
        alarm.rings.set_result(None)
        self._alarms[subject].remove(alarm)
        if not self._alarms[subject]:
            del self._alarms[subject]


class CombinedStream(Generic[N, R, W]):
    """Combines the updates of one subscription.

    `subject` is the user or the post whose streams share alarms and reads. `delay` returns how many seconds longer
    updates must wait because the client has exceeded the rate limit of events.
    """

    def __init__(self, subject: int, reads: StreamReads[N, R, W], delay: Callable[[], float]) -> None:
        self._subject = subject
        self._reads = reads
        self._delay = delay

    async def updates(self, source: AsyncGenerator[N | Checkpoint | Gap]) -> AsyncGenerator[R | Checkpoint | Gap]:
        """Yield the combined updates of a subscription. Raises the errors of the subscription."""
        clock = asyncio.get_running_loop().time
        waiting, gap, sent_at = self._reads.waiting(), None, -SEND_SECONDS
        alarm: Alarm | None = None
        checked_at = 0.0
        upcoming = asyncio.create_task(_next_of(source))
        try:
            while True:
                is_full = gap is not None or len(waiting) >= MAX_WAITING
                await _first_of(alarm, None if is_full and alarm is not None else upcoming)
                if upcoming.done() and not is_full:
                    update, upcoming = upcoming.result(), asyncio.create_task(_next_of(source))
                    if isinstance(update, Gap):
                        gap = update
                    elif not isinstance(update, Checkpoint):
                        checked_at = checked_at if waiting else clock()
                        waiting.add(update)
                        at = max(clock() + SETTLE_SECONDS, sent_at + SEND_SECONDS)
                        alarm = alarm or self._reads.alarm(self._subject, at)
                    elif not waiting:
                        yield update
                rings = alarm is not None and alarm.rings.done()
                if rings or gap is not None or len(waiting) >= MAX_WAITING:
                    raise_error(upcoming)
                    if waiting and (delay := self._delay()):
                        alarm = self._reads.alarm(self._subject, clock() + delay)
                        continue
                    sent_at = alarm.at if alarm is not None and rings else clock()
                    async with aclosing(self._changes(waiting, checked_at, upcoming)) as changes:
                        async for change in changes:
                            yield change
                    if gap is not None:
                        yield gap
                    waiting, gap, alarm = self._reads.waiting(), None, None
        finally:
            await end([upcoming])
            if not upcoming.cancelled():
                upcoming.exception()  # mark as retrieved: the stream ends in any case
            await source.aclose()

    async def _changes(self, waiting: W, checked_at: float, upcoming: "asyncio.Task[Any]") -> AsyncGenerator[R]:
        """Yield the updates to send, in the order of their numbers.

        They are checked again if they have waited longer than usual, because the client is slow or the store did not
        answer.
        """
        clock, reads = asyncio.get_running_loop().time, self._reads
        changes = [*await self._answered(partial(reads.read, self._subject, waiting), upcoming)] if waiting else []
        while changes:
            if clock() - checked_at > RECHECK_SECONDS:
                changes, checked_at = await self._answered(partial(reads.recheck, changes), upcoming), clock()
            if changes:
                yield changes.pop(0)
                raise_error(upcoming)

    async def _answered(
        self, ask: Callable[[], Coroutine[Any, Any, list[R]]], upcoming: "asyncio.Task[Any]"
    ) -> list[R]:
        """Return the result of `ask`. Retry while the store or the archive is down.

        If the subscription ends in the meantime, raise its error.
        """
        while True:
            try:
                changes = await ask()
            except (StoreUnavailable, ArchiveUnavailable):
                raise_error(upcoming)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                raise_error(upcoming)
                return changes


async def _next_of(source: AsyncGenerator[N | Checkpoint | Gap]) -> N | Checkpoint | Gap:
    return await anext(source)


def raise_error(upcoming: "asyncio.Task[Any]") -> None:
    """Raise the error of the task if it has failed."""
    if upcoming.done():
        upcoming.result()


async def _first_of(alarm: Alarm | None, upcoming: "asyncio.Task[Any] | None") -> None:
    """Wait until an alarm goes off or the next update of a subscription arrives."""
    awaited: list[asyncio.Future[Any]] = [] if alarm is None else [alarm.rings]
    if upcoming is not None:
        awaited.append(upcoming)
    await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)


def _retrieve(task: "asyncio.Task[Any]") -> None:
    if not task.cancelled():
        task.exception()  # mark the exception as retrieved: all streams that asked may have ended
