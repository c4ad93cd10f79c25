"""Points of the events of subscriptions: a bucket for each viewer or anonymous network, in the memory of the process.

The buckets are separate from those of requests, so that users cannot use up another user's points by replying to that
user. An event is charged once it has been executed, even if the balance becomes negative. Until it is positive again,
the streams of the holder wait: they combine events, or their buffers fill and they send a `Gap`.
"""

import asyncio
from math import ceil

DELIVERY = 30  # points of an event that was executed for several streams, besides a share of the execution
CHECKPOINT = 5  # points of a Checkpoint or a Gap
FULL_BUCKETS = 1_000  # full buckets, which are dropped when there are so many more than after the last time
MINUTE = 60


class EventPoints:
    """The buckets of all holders. Each holds the points of one minute. Requires a running event loop."""

    def __init__(self, per_minute: int) -> None:
        self._per_second = per_minute / MINUTE
        self._full_at: dict[str, float] = {}
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._most = FULL_BUCKETS

    def charge(self, holder: str, points: int) -> None:
        """Take points from the bucket of a holder, into debt if it has fewer."""
        now = asyncio.get_running_loop().time()
        if len(self._full_at) >= self._most and holder not in self._full_at:
            self._full_at = {each: full_at for each, full_at in self._full_at.items() if full_at > now}
            self._most = len(self._full_at) + FULL_BUCKETS
        self._full_at[holder] = max(now, self._full_at.get(holder, now)) + points / self._per_second

    def left(self, holder: str) -> float:
        """Return the points in the bucket of a holder; below 0 if it is in debt."""
        return (MINUTE - self._seconds_to_full(holder)) * self._per_second

    def delay(self, holder: str) -> float:
        """Return the seconds until the holder has no debt; 0.0 if there is none."""
        return max(0.0, self._seconds_to_full(holder) - MINUTE)

    async def wait(self, holder: str) -> None:
        """Wait until the holder has no debt. All waiting events continue in the same iteration of the event loop."""
        while delay := self.delay(holder):
            waiting = self._waiting.get(holder)
            if waiting is None:
                loop = asyncio.get_running_loop()
                waiting = self._waiting[holder] = loop.create_future()
                loop.call_later(delay, self._wake, holder)
            await asyncio.shield(waiting)

    def _wake(self, holder: str) -> None:
        self._waiting.pop(holder).set_result(None)

    def _seconds_to_full(self, holder: str) -> float:
        full_at = self._full_at.get(holder)
        return 0.0 if full_at is None else full_at - asyncio.get_running_loop().time()


def share(points: int, subscribers: int) -> int:
    """Return what an event costs each of the subscribers for whom it was executed together."""
    return points if subscribers <= 1 else min(points, DELIVERY + ceil(points / subscribers))
