"""The bounded buffer between the log reader, which adds updates, and one subscription, which takes them."""

import asyncio
import sys
from collections.abc import Callable
from enum import Enum, auto
from typing import Generic, TypeVar

from graph.feed.updates import Change

MAX_BYTES = 256 * 1024
TAKE_BATCH = 100
ACTIVE_SECONDS = 5.0  # how long a subscription counts as active after its last `take`
RECORD_BYTES = 200  # estimated size of an update without its text

C = TypeVar("C", bound=Change)


def size_of(update: Change) -> int:
    """Return the approximate memory use of an update, in bytes."""
    post = getattr(update, "post", None)
    return RECORD_BYTES + sys.getsizeof(getattr(post, "text", ""))


class CutOff(Enum):
    """Why a subscription was cut off from live updates."""

    FULL = auto()
    """The buffer was full: the updates that were in it are lost."""
    REPLAY = auto()
    """The reader skipped events, or the store was repaired: the subscription replays the events after its position."""


class Buffer(Generic[C]):
    """The updates that are waiting for one subscription: at most `MAX_BYTES`, including the batch taken last.

    An update that does not fit cuts the subscription off: the buffer is emptied and drops all updates until `reset`.
    `cut_off` is the reason, or None. `checked_at` is the event-loop time of the oldest deletion check of the waiting
    updates.

    If `on_update` is set, a new update calls it instead of waking the subscription. The oldest update may then be lent
    to a courier (`graph.feed.handover`). Until the loan ends, nothing wakes the subscription.
    """

    __slots__ = (
        "_error",
        "_lent",
        "_size",
        "_taken_at",
        "_taken_size",
        "_timer",
        "_until",
        "_updates",
        "_waiter",
        "checked_at",
        "cut_off",
        "on_update",
    )

    def __init__(self) -> None:
        self.on_update: Callable[[], None] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._until = 0.0
        self._error: Exception | None = None
        self._taken_at = 0.0
        self.reset()

    def reset(self) -> None:
        """Empty the buffer and accept updates again."""
        self._updates: list[C] = []
        self._size = self._taken_size = 0
        self.cut_off: CutOff | None = None
        self.checked_at = 0.0
        self._lent: tuple[C, float] | None = None

    def add(self, update: C, size: int, checked_at: float) -> bool:
        """Add an update of `size` bytes. Return False if it does not fit, which cuts the subscription off.

        `checked_at` is the time when the update's post was last known to exist, or -inf if that was not checked.
        """
        if self.cut_off is not None:
            return True
        if self._taken_size + self._size + size > MAX_BYTES:
            self.cut(CutOff.FULL)
            return False
        self.checked_at = min(self.checked_at, checked_at) if self._updates else checked_at
        self._updates.append(update)
        self._size += size
        self._announce()
        return True

    def is_congested(self, now: float) -> bool:
        """Return True if the buffer is more than half full although its subscription is active."""
        size = self._taken_size + self._size
        return self.cut_off is None and size > MAX_BYTES // 2 and now - self._taken_at < ACTIVE_SECONDS

    def cut(self, reason: CutOff) -> None:
        """Drop all updates and cut the subscription off."""
        self._updates, self._size, self.cut_off = [], 0, reason
        self.wake()

    def fail(self, error: Exception) -> None:
        """End the subscription with this error."""
        self._error = error
        self.wake()

    def raise_error(self) -> None:
        """Raise the error passed to `fail`, if any."""
        if self._error is not None:
            raise self._error

    def take(self) -> list[C]:
        """Remove and return the next updates, at most `TAKE_BATCH`; they count as buffered until the next `wait`."""
        taken, self._updates = self._updates[:TAKE_BATCH], self._updates[TAKE_BATCH:]
        self._taken_at = asyncio.get_running_loop().time()
        self._taken_size = sum(map(size_of, taken)) if self._updates else self._size
        self._size -= self._taken_size
        return taken

    def offered(self) -> C | None:
        """Return the oldest update; None if there is none, the subscription is not waiting, or an update is lent."""
        if self._waiter is None or self._waiter.done() or self._lent is not None:
            return None
        return self._updates[0] if self._updates else None

    def lend(self, now: float) -> None:
        """Remove the `offered` update, which counts as buffered until `delivered` or `give_back` is called."""
        update = self._updates.pop(0)
        self._lent = update, self.checked_at
        self._taken_at = now
        self._taken_size = size_of(update) if self._updates else self._size
        self._size -= self._taken_size

    def delivered(self, until: float) -> None:
        """End a loan after delivery. The subscription keeps waiting, at most until the event-loop time `until`."""
        self._lent = None
        self._taken_size = 0
        self._until = until
        if self._timer is None:
            self._wake_at(until)
        if self._updates and self.cut_off is None and self._error is None:
            self._announce()
        elif self._is_ready():
            self.wake()

    def give_back(self) -> None:
        """End a loan without delivery: put the update back unless the buffer was cut off, and wake the subscription."""
        lent, self._lent = self._lent, None
        if lent is not None and self.cut_off is None:
            update, checked_at = lent
            self.checked_at = min(checked_at, self.checked_at) if self._updates else checked_at
            self._updates.insert(0, update)
            self._size += self._taken_size
        self._taken_size = 0
        self.wake()

    async def wait(self, until: float) -> bool:
        """Wait for an update, a cut-off or an error. Return False if the event loop's time reaches `until` first."""
        self._taken_size = 0
        if not self._is_ready():
            self._waiter = asyncio.get_running_loop().create_future()
            self._wake_at(until)
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._is_ready()

    def stop_timer(self) -> None:
        """Stop the timer of `wait`. The timer is kept between calls, because most calls end before it fires."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake_at(self, until: float) -> None:
        if self._timer is not None and self._timer.when() > until:
            self.stop_timer()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(until, self._time_out)
        self._until = until

    def _time_out(self) -> None:
        self._timer = None
        if self._waiter is None:
            return
        if asyncio.get_running_loop().time() < self._until:
            self._wake_at(self._until)
        else:
            self.wake()

    def _is_ready(self) -> bool:
        return bool(self._updates) or self.cut_off is not None or self._error is not None

    def _announce(self) -> None:
        if self.on_update is None:
            self.wake()
        elif self._waiter is not None and self._lent is None:
            self.on_update()

    def wake(self) -> None:
        """Wake the subscription if it is waiting and no update is lent."""
        if self._waiter is not None and self._lent is None and not self._waiter.done():
            self._waiter.set_result(None)
