"""Limits on a holder's use of one process. A holder is a user, or the network of an anonymous client.

Quotas limit open connections, subscriptions and filter terms. Turns limit the operations that run at once; further
operations wait in order. Event points limit the events of subscriptions. Their buckets are separate from the buckets of
requests, so that nobody can use up a user's request points by sending the user many replies. Every event is charged,
and a bucket with too few points goes into debt. Until the debt is paid, the holder's streams wait: they combine events,
or their buffers fill and they send a `Gap`.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from math import ceil

from graphql import GraphQLError

from server.errors import RATE_LIMITED, RateLimited
from server.settings import Settings

ANONYMOUS_SHARE = 100  # an anonymous address may hold a hundredth of the filter terms of a user
MAX_WAITING = 50  # operations of one holder, in addition to the running ones
DELIVERY = 30  # points of an event that was executed for several streams, in addition to a share of its cost
CHECKPOINT = 5  # points of a Checkpoint or a Gap
FULL_BUCKETS = 1_000  # full buckets are dropped whenever this many buckets have been added
MINUTE = 60

Release = Callable[[], None]


class QuotaExceeded(Exception):
    """Raised if a holder would exceed its quota."""


class Quota:
    """Counts the open resources of one kind for each holder, and allows each holder at most `limit`."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._held: Counter[Hashable] = Counter()

    def acquire(self, holder: Hashable, weight: int = 1) -> Release:
        """Count `weight` for a holder. Return a function that releases it, to be called once. Raises QuotaExceeded."""
        if self.held_by(holder) + weight > self.limit:
            raise QuotaExceeded
        self._held[holder] += weight
        return partial(self._release, holder, weight)

    def held_by(self, holder: Hashable) -> int:
        """Return the total weight that one holder has acquired and not released."""
        return self._held.get(holder, 0)

    @property
    def held(self) -> int:
        """The total weight that all holders have acquired and not released."""
        return self._held.total()

    def _release(self, holder: Hashable, weight: int) -> None:
        self._held[holder] -= weight
        if not self._held[holder]:
            del self._held[holder]


class EventPoints:
    """A bucket of event points for each holder. A full bucket has the points of one minute.

    The methods require a running event loop.
    """

    def __init__(self, per_minute: int) -> None:
        self._per_second = per_minute / MINUTE
        self._full_at: dict[str, float] = {}
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._cleanup_size = FULL_BUCKETS

    def charge(self, holder: str, points: int) -> None:
        """Take points from the bucket of a holder. A bucket with fewer points goes into debt."""
        now = asyncio.get_running_loop().time()
        if len(self._full_at) >= self._cleanup_size and holder not in self._full_at:
            self._full_at = {each: full_at for each, full_at in self._full_at.items() if full_at > now}
            self._cleanup_size = len(self._full_at) + FULL_BUCKETS
        self._full_at[holder] = max(now, self._full_at.get(holder, now)) + points / self._per_second

    def left(self, holder: str) -> float:
        """Return the points in a holder's bucket; negative if the bucket is in debt."""
        return (MINUTE - self._seconds_to_full(holder)) * self._per_second

    def delay(self, holder: str) -> float:
        """Return the seconds until the holder's debt is paid, or 0.0 if the holder has no debt."""
        return max(0.0, self._seconds_to_full(holder) - MINUTE)

    async def wait(self, holder: str) -> None:
        """Wait until the holder has no debt. All events that wait resume in the same event-loop iteration."""
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
    """Return the points that each subscriber is charged for an event that was executed once for all of them."""
    return points if subscribers <= 1 else min(points, DELIVERY + ceil(points / subscribers))


@dataclass(frozen=True, slots=True)
class Quotas:
    """The quotas of a process: WebSockets, live subscriptions, and the terms of their event filters.

    `streams_of_field` counts the live subscriptions to each field. `event_points` limits the events of subscriptions;
    it is None if rates are not limited.
    """

    sockets: Quota
    streams: Quota
    anonymous_streams: Quota
    streams_of_field: Quota
    terms: Quota
    anonymous_terms: Quota
    event_points: EventPoints | None = None

    @classmethod
    def of(cls, settings: Settings) -> "Quotas":
        """Return the quotas that the settings define.

        If rates are limited, the subscriptions of anonymous clients have a separate quota.
        """
        streams = Quota(settings.max_streams)
        anonymous = Quota(min(settings.max_streams, settings.max_anonymous_streams))
        return cls(
            sockets=Quota(settings.max_streams),
            streams=streams,
            anonymous_streams=anonymous if settings.limits_rates else streams,
            streams_of_field=Quota(settings.max_streams_per_field),
            terms=Quota(settings.max_filter_terms),
            anonymous_terms=Quota(max(1, settings.max_filter_terms // ANONYMOUS_SHARE)),
            event_points=EventPoints(settings.event_points_per_minute) if settings.limits_rates else None,
        )

    def acquire_stream(self, holder: Hashable, fields: Collection[str], *, anonymous: bool) -> Release:
        """Count a live subscription to these root fields. Return a function that releases it.

        Raises GraphQLError if a quota would be exceeded.
        """
        quota = self.anonymous_streams if anonymous else self.streams
        with ExitStack() as acquired:
            try:
                acquired.callback(quota.acquire(holder))
            except QuotaExceeded:
                message = f"You have {quota.limit} live subscriptions, which is the limit. End one first."
                raise GraphQLError(message, extensions={"code": RATE_LIMITED}) from None
            for field in fields:
                try:
                    acquired.callback(self.streams_of_field.acquire((holder, field)))
                except QuotaExceeded:
                    message = (
                        f"You have {self.streams_of_field.limit} live subscriptions to '{field}', which is the limit "
                        f"for one field. End one first."
                    )
                    raise GraphQLError(message, extensions={"code": RATE_LIMITED}) from None
            return acquired.pop_all().close

    def acquire_terms(self, holder: Hashable, terms: int, *, anonymous: bool) -> Release:
        """Count the terms of an event filter. Return a function that releases them.

        Raises GraphQLError if the quota would be exceeded.
        """
        quota = self.anonymous_terms if anonymous else self.terms
        try:
            return quota.acquire(holder, terms)
        except QuotaExceeded:
            message = (
                f"Your event filters have {quota.held_by(holder):,} terms and this one has {terms:,}; "
                f"the limit is {quota.limit:,}{' for anonymous clients' if anonymous else ''}. "
                "End a subscription first, or use a smaller filter."
            )
            raise GraphQLError(message, extensions={"code": RATE_LIMITED}) from None


class Turns:
    """Limits each holder to `limit` concurrent operations in this process."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._running: dict[Hashable, int] = {}
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}

    def try_acquire(self, holder: Hashable) -> bool:
        """Take a turn and return True if the holder has a free one; return False otherwise. `release` gives it back."""
        running = self._running.get(holder, 0)
        if running >= self._limit:
            return False
        self._running[holder] = running + 1
        return True

    async def acquire(self, holder: Hashable) -> None:
        """Wait for a turn. `release` gives it back. Raises RateLimited if `MAX_WAITING` operations already wait."""
        if self.try_acquire(holder):
            return
        waiting = self._waiting.setdefault(holder, deque())
        if len(waiting) >= MAX_WAITING:
            raise RateLimited(
                f"{self._limit} of your operations are running and {MAX_WAITING} are waiting, which is the limit. "
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
        """Pass the turn to the holder's operation that has waited longest, or free the turn if none waits."""
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
