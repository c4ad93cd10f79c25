"""Rate limits, counted in the store and shared by all processes.

The algorithm is GCRA, the generic cell rate algorithm of ITU-T I.371: a bucket holds `burst` units and refills evenly.
The store keeps one number for each rate of a holder, which is a user or a network: the time at which the bucket will be
full. A script charges all rates that a request names for a holder, or none of them. The charge is sent together with
the first reads of a request (`Store.ask`), so it needs no separate round trip. While the store does not answer, each
process counts separately.

If a rate has an `advance`, a process takes that many more units than it needs, and spends them on later requests
without asking the store. Units that are not spent within the rate's period are lost. All processes together admit at
most as much as one bucket would, plus the advance of each process.

A process remembers when the buckets that it has seen will be full. It refuses a charge that exceeds such a bucket,
without asking the store.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, TypeAlias

from cachetools import LRUCache

from graph import keys
from graph.errors import StoreUnavailable
from graph.store.commands import script
from graph.store.store import Store

MICROSECONDS = 1_000_000
MAX_BUCKETS = 20_000  # remembered by a process, one for each holder and rate


@dataclass(frozen=True)
class Rate:
    """A rate of `limit` units per `period` seconds, at most `burst` at once. `advance` units are taken in advance."""

    name: str
    limit: int
    period: int
    burst: int
    advance: int = 0

    @cached_property
    def unit_seconds(self) -> float:
        """The number of seconds in which one unit is refilled."""
        return self.period / self.limit

    @cached_property
    def full_seconds(self) -> float:
        """The number of seconds in which an empty bucket refills."""
        return self.burst * self.unit_seconds


Charge: TypeAlias = tuple[Rate, int]
"""A rate and the units to charge. If there are more units than the rate's burst, only the burst is charged."""


class Decision(NamedTuple):
    """The result of charging one rate: the remaining units, and the seconds until the bucket is full.

    If the charge was refused, it may succeed after `retry_after` seconds.
    """

    rate: Rate
    cost: int
    remaining: int
    full_after: float
    retry_after: float = 0.0

    @property
    def refused(self) -> bool:
        """Whether the charge was refused."""
        return self.retry_after > 0


class Bucket:
    """What a process knows about one bucket: when it will be full, and the units taken in advance with their expiry."""

    __slots__ = ("advance", "advance_expires_at", "full_at")

    def __init__(self) -> None:
        self.full_at = 0.0
        self.advance = 0.0
        self.advance_expires_at = 0.0


class PendingCharge:
    """A charge that may be pending. `refusal` holds the decisions if this process refused it at once, else None."""

    def __init__(
        self,
        rates: "Rates",
        holder: str,
        charges: Sequence[Charge],
        reply: "asyncio.Future[list[Decision]]",
        refusal: list[Decision] | None = None,
    ) -> None:
        self.refusal = refusal
        self._rates = rates
        self._holder = holder
        self._charges = charges
        self._reply = reply
        self._decisions: list[Decision] | None = None

    async def decisions(self) -> list[Decision]:
        """Return the decision on each charge, in order. Charges locally if the store does not answer."""
        if self._decisions is None:
            try:
                self._decisions = await self._reply
            except StoreUnavailable:
                self._decisions = self._decisions or self._rates.charge_locally(self._holder, self._charges)
        return self._decisions

    def forget(self) -> None:
        """Discard the decisions. The charge is still applied."""
        self._reply.add_done_callback(_retrieve)


class Rates:
    """Charges rate limits that are counted in one store.

    The holder of a rate is a user or, for anonymous requests, a network.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._buckets: LRUCache[tuple[str, str], Bucket] = LRUCache(MAX_BUCKETS)

    def spend(self, holder: str, rate: Rate, cost: int) -> Decision | None:
        """Charge a rate from the units taken in advance. Return None if they do not suffice. No round trip."""
        bucket = self._buckets.get((holder, rate.name))
        if bucket is None or bucket.advance < cost:
            return None
        now = self._now()
        if bucket.advance_expires_at <= now:
            bucket.advance = 0.0
            return None
        bucket.advance -= cost
        return _decision((rate, cost), bucket.full_at - now, bucket.advance, charged=True)

    def charge(self, holder: str, charges: Sequence[Charge]) -> PendingCharge:
        """Charge several rates of a holder: all of them, or none if one would be exceeded.

        The charge shares the round trip of reads in the same event-loop iterations. It takes no round trip if this
        process already knows that the charge will be refused.
        """
        refusal = self.refusal(holder, charges)
        if refusal is not None:
            reply: asyncio.Future[list[Decision]] = self._store.running_loop().create_future()
            reply.set_result(refusal)
            return PendingCharge(self, holder, charges, reply, refusal)
        used = [self._use_advance(holder, rate, cost) for rate, cost in charges]
        needed = [min(cost, rate.burst) - spent for (rate, cost), spent in zip(charges, used, strict=True)]
        words = [
            word for (rate, _), units in zip(charges, needed, strict=True) for word in _words(rate, units, rate.advance)
        ]
        return PendingCharge(self, holder, charges, self._ask(holder, charges, used, words))

    def owe(self, holder: str, rate: Rate, units: int) -> None:
        """Charge an operation for units that are known only after it has run. The charge is sent in the background.

        The charge is never refused: the bucket can go into debt, by its burst at most, and later charges are refused
        until it has refilled. One round trip, shared with other reads; none if the units taken in advance suffice.
        """
        used = self._use_advance(holder, rate, units)
        if used < units:
            charges, words = [(rate, units)], _words(rate, units - used, 0, debt=rate.burst)
            charged = self._ask(holder, charges, [used], words)
            charged.add_done_callback(partial(self._owe_locally, holder, rate, units - used))

    def _owe_locally(self, holder: str, rate: Rate, units: float, reply: "asyncio.Future[list[Decision]]") -> None:
        """Record a debt in this process, if the store does not answer."""
        if not reply.cancelled() and isinstance(reply.exception(), StoreUnavailable):
            bucket, now = self._bucket(holder, rate), self._now()
            owed = max(bucket.full_at - now, 0.0) + units * rate.unit_seconds
            bucket.full_at = now + min(owed, 2 * rate.full_seconds)

    def give_back(self, holder: str, rate: Rate, units: int) -> "asyncio.Future[list[Decision]]":
        """Refund charged units that were not used. One round trip; the caller need not await it."""
        giving = self._ask(holder, [(rate, 0)], [0.0], _words(rate, -units, 0))
        giving.add_done_callback(_retrieve)
        return giving

    def _ask(
        self, holder: str, charges: Sequence[Charge], used: Sequence[float], words: Sequence[str | int]
    ) -> "asyncio.Future[list[Decision]]":
        """Send a charge in the same round trip as other reads."""
        command = script("charge_rates").call([keys.rate(holder)], *words)
        return self._store.ask([command], partial(self._decide, holder, charges, used))

    def refusal(self, holder: str, charges: Sequence[Charge]) -> list[Decision] | None:
        """Return the decisions if this process knows that a charge would be refused, else None. No round trip."""
        now, found = self._now(), []
        for rate, cost in charges:
            bucket = self._buckets.get((holder, rate.name))
            wait = advance = 0.0
            if bucket is not None:
                wait, advance = bucket.full_at - now, bucket.advance if bucket.advance_expires_at > now else 0.0
            found.append((rate, cost, wait, advance))
        if not any(_missing(*each) > 0 for each in found):
            return None
        return [_decision((rate, cost), wait, advance, charged=False) for rate, cost, wait, advance in found]

    def charge_locally(self, holder: str, charges: Sequence[Charge]) -> list[Decision]:
        """Charge the rates of a holder in this process only, by the same algorithm."""
        refused = self.refusal(holder, charges)
        if refused is not None:
            return refused
        now = self._now()
        decisions = []
        for rate, cost in charges:
            needed = min(cost, rate.burst) - self._use_advance(holder, rate, cost)
            bucket = self._bucket(holder, rate)
            bucket.full_at = max(bucket.full_at, now) + needed * rate.unit_seconds
            decisions.append(_decision((rate, cost), bucket.full_at - now, bucket.advance, charged=True))
        return decisions

    def _decide(
        self, holder: str, charges: Sequence[Charge], used: Sequence[float], replies: Sequence[Sequence[int]]
    ) -> list[Decision]:
        """Return the decisions in the script's reply. `used` has, for each charge, the units taken from the advance."""
        [[charged, *answers]] = replies
        now = self._now()
        decisions = []
        for index, (rate, cost) in enumerate(charges):
            wait, advance = answers[2 * index] / MICROSECONDS, answers[2 * index + 1] / MICROSECONDS / rate.unit_seconds
            bucket = self._bucket(holder, rate)
            bucket.full_at = now + wait
            bucket.advance += advance if charged else used[index]
            if charged:
                bucket.advance_expires_at = now + rate.period
            decisions.append(_decision((rate, cost), wait, bucket.advance, charged=bool(charged)))
        return decisions

    def _use_advance(self, holder: str, rate: Rate, cost: int) -> float:
        """Take up to `cost` units from the advance, and return how many were taken."""
        bucket = self._buckets.get((holder, rate.name))
        if bucket is None or not bucket.advance:
            return 0.0
        used = min(bucket.advance, cost, rate.burst) if bucket.advance_expires_at > self._now() else 0.0
        bucket.advance = bucket.advance - used if used else 0.0
        return used

    def _bucket(self, holder: str, rate: Rate) -> Bucket:
        bucket = self._buckets.get((holder, rate.name))
        if bucket is None:
            bucket = self._buckets[holder, rate.name] = Bucket()
        return bucket

    def _now(self) -> float:
        return self._store.running_loop().time()


def _words(rate: Rate, units: float, advance: float, debt: float = 0) -> list[str | int]:
    """Return the arguments of the script for one rate."""
    unit = rate.unit_seconds * MICROSECONDS
    return [rate.name, *(round(each * unit) for each in (units, rate.burst, advance, debt))]


def _decision(charge: Charge, wait: float, advance: float, *, charged: bool) -> Decision:
    """Return the decision on a charge, given that the bucket is full in `wait` seconds and `advance` units are left."""
    rate, cost = charge
    if wait < 0:
        wait = 0.0
    remaining = max(0, min(rate.burst, int((rate.full_seconds - wait) / rate.unit_seconds + advance + 1e-6)))
    return Decision(rate, cost, remaining, wait, 0.0 if charged else _missing(rate, cost, wait, advance))


def _missing(rate: Rate, cost: int, wait: float, advance: float) -> float:
    """Return the seconds until a charge would succeed, or 0 if it would succeed now."""
    missing = max(0.0, wait) + (min(cost, rate.burst) - advance) * rate.unit_seconds - rate.full_seconds
    return missing if missing > 1e-6 else 0.0


def _retrieve(reply: "asyncio.Future[list[Decision]]") -> None:
    if not reply.cancelled():
        reply.exception()
