"""A stream: what waits for one subscriber, bounded, between the reader of the log and whoever takes it."""

import asyncio
import sys
from typing import Generic, TypeVar

from graph.feed.updates import GapReason, Happened

MAX_BUFFERED = 256 * 1024  # bytes
TAKEN_AT_ONCE = 100
ALIVE_SECONDS = 5.0  # since a subscriber last took something, until its slowness is taken for its own
RECORD_BYTES = 200  # of an update beside its text

E = TypeVar("E", bound=Happened)


def size_of(update: Happened) -> int:
    """Tell about how many bytes of memory an update takes."""
    post = getattr(update, "post", None)
    return RECORD_BYTES + sys.getsizeof(getattr(post, "text", ""))


class Stream(Generic[E]):
    """The updates that wait for one subscriber: `MAX_BUFFERED` bytes at most, those being delivered included.

    One update more cuts the stream off: nothing waits any longer, and `cut_off` says why. `position` is the number up
    to which the subscriber has been told everything. `waiting_since` is when the oldest update that waits came, on the
    event loop's clock.
    """

    __slots__ = (
        "_being_taken",
        "_ended",
        "_events",
        "_size",
        "_taken_at",
        "_waiter",
        "cut_off",
        "position",
        "waiting_since",
    )

    def __init__(self) -> None:
        self._waiter: asyncio.Future[None] | None = None
        self._ended: Exception | None = None
        self._taken_at = 0.0
        self.position = 0
        self.restart()

    def restart(self) -> None:
        """Begin anew, with nothing that waits."""
        self._events: list[E] = []
        self._size = self._being_taken = 0
        self.cut_off: GapReason | None = None
        self.waiting_since = 0.0

    def offer(self, update: E, size: int, now: float) -> bool:
        """Add an update of this size in bytes. Tells whether that was too much, and the stream is now cut off."""
        if self.cut_off is not None:
            return False
        if self._being_taken + self._size + size > MAX_BUFFERED:
            self.cut(GapReason.SLOW_CONSUMER)
            return True
        if not self._events:
            self.waiting_since = now
        self._events.append(update)
        self._size += size
        self._wake()
        return False

    def is_crowded(self, now: float) -> bool:
        """Tell whether more than half of what may be buffered is, though the subscriber goes on taking."""
        buffered = self._being_taken + self._size
        return self.cut_off is None and buffered > MAX_BUFFERED // 2 and now - self._taken_at < ALIVE_SECONDS

    def cut(self, reason: GapReason) -> None:
        """Drop what waits, and remember why."""
        self._events, self._size, self.cut_off = [], 0, reason
        self._wake()

    def end(self, error: Exception) -> None:
        """Let the subscriber leave with this error."""
        self._ended = error
        self._wake()

    def raise_ended(self) -> None:
        """Raise what the stream was ended with, if it was."""
        if self._ended is not None:
            raise self._ended

    def take(self) -> list[E]:
        """Take the next updates, a hundred at most; they count until the next are taken."""
        taken, self._events = self._events[:TAKEN_AT_ONCE], self._events[TAKEN_AT_ONCE:]
        self._taken_at = asyncio.get_running_loop().time()
        self._being_taken = sum(map(size_of, taken))
        self._size -= self._being_taken
        return taken

    async def wait(self, until: float) -> bool:
        """Wait until there is something to do; False if there is nothing at this time of the event loop's clock."""
        self._being_taken = 0
        if not self._is_due():
            loop = asyncio.get_running_loop()
            self._waiter = loop.create_future()
            alarm = loop.call_at(until, self._wake)
            try:
                await self._waiter
            finally:
                alarm.cancel()
                self._waiter = None
        return self._is_due()

    def _is_due(self) -> bool:
        return bool(self._events) or self.cut_off is not None or self._ended is not None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
