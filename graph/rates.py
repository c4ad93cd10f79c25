"""Rates: how much one holder may use in a time, counted in the store, so that all processes count together.

The algorithm is GCRA, the generic cell rate algorithm of ITU-T I.371: a bucket holds `burst` units and refills evenly.
The store keeps one number for each rate of a holder, the time at which the bucket will be full again; a script charges
all rates of a holder at once, or none. The charge travels with the first look-ups of a request (`Store.ask`), so it
costs no round trip of its own. While the store does not answer, each process counts alone.

Of a rate with an `advance`, a process takes so many units more than it needs, and spends them without asking: most
requests then cost the store nothing. What is not spent within the rate's period is lost. All processes together admit
at most what one bucket would, and in addition the advance of each.

A process remembers when the buckets that it has seen will be full. Time moves that only forward, so a charge that this
already excludes is refused without asking the store.
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
REMEMBERED = 20_000  # rates of holders


@dataclass(frozen=True)
class Rate:
    """`limit` units in `period` seconds, of which `burst` may be used at once, and `advance` are taken in advance."""

    name: str
    limit: int
    period: int
    burst: int
    advance: int = 0

    @cached_property
    def seconds(self) -> float:
        """The seconds in which one unit refills."""
        return self.period / self.limit

    @cached_property
    def patience(self) -> float:
        """The seconds in which an empty bucket refills."""
        return self.burst * self.seconds


Charge: TypeAlias = tuple[Rate, int]
"""A rate and the units to charge, at most its burst; more are charged as the whole burst."""


class Decision(NamedTuple):
    """What became of a charge of one rate: the units left, and the seconds until the bucket is full again.

    If it was refused, `retry_after` are the seconds after which the same charge may succeed.
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


class Known:
    """What a process knows of a rate of one holder: when its bucket is full, and what it has taken in advance."""

    __slots__ = ("advanced", "full_at", "lapses_at")

    def __init__(self) -> None:
        self.full_at = 0.0
        self.advanced = 0.0
        self.lapses_at = 0.0


class Charging:
    """A charge under way. `refusal` are its decisions if the process knew at once that it is refused, else None."""

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
        """Return what became of each charge, in order. Counts locally if the store does not answer."""
        if self._decisions is None:
            try:
                self._decisions = await self._reply
            except StoreUnavailable:
                self._decisions = self._decisions or self._rates.charge_locally(self._holder, self._charges)
        return self._decisions

    def forget(self) -> None:
        """Let the charge go on without anybody who waits for it."""
        self._reply.add_done_callback(_retrieve)


class Rates:
    """Charges rates in one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: LRUCache[tuple[str, str], Known] = LRUCache(REMEMBERED)

    def spend(self, holder: str, rate: Rate, cost: int) -> Decision | None:
        """Charge a rate from what was taken in advance; None if that is not enough. No round trip."""
        known = self._known.get((holder, rate.name))
        if known is None or known.advanced < cost:
            return None
        now = self._now()
        if known.lapses_at <= now:
            known.advanced = 0.0
            return None
        known.advanced -= cost
        return _decision((rate, cost), known.full_at - now, known.advanced, charged=True)

    def charge(self, holder: str, charges: Sequence[Charge]) -> Charging:
        """Begin to charge the rates of a holder: all, or none if one of them would be exceeded.

        No round trip of its own if other reads are asked for in the same event-loop ticks; none at all if what this
        process remembers excludes the charge already.
        """
        known = self.refusal(holder, charges)
        if known is not None:
            reply: asyncio.Future[list[Decision]] = self._store.running_loop().create_future()
            reply.set_result(known)
            return Charging(self, holder, charges, reply, known)
        words: list[str | int] = []
        used = [self._use_advance(holder, rate, cost) for rate, cost in charges]
        for (rate, cost), spent in zip(charges, used, strict=True):
            unit = rate.seconds * MICROSECONDS
            needed = min(cost, rate.burst) - spent
            words += [rate.name, round(needed * unit), round(rate.burst * unit), round(rate.advance * unit)]
        command = script("charge_rates").call([keys.rate(holder)], *words)
        return Charging(self, holder, charges, self._store.ask([command], partial(self._decide, holder, charges, used)))

    def give_back(self, holder: str, rate: Rate, units: int) -> None:
        """Give back units that were charged and turned out not to be used, without waiting for the outcome."""
        unit = rate.seconds * MICROSECONDS
        words = (rate.name, -round(units * unit), round(rate.burst * unit), 0)
        command = script("charge_rates").call([keys.rate(holder)], *words)
        self._store.ask([command], partial(self._decide, holder, [(rate, 0)], [0.0])).add_done_callback(_retrieve)

    def refusal(self, holder: str, charges: Sequence[Charge]) -> list[Decision] | None:
        """Return the decisions if this process already knows that one of the charges is refused; else None."""
        now, found = self._now(), []
        for rate, cost in charges:
            known = self._known.get((holder, rate.name))
            wait = advanced = 0.0
            if known is not None:
                wait, advanced = known.full_at - now, known.advanced if known.lapses_at > now else 0.0
            found.append((rate, cost, wait, advanced))
        if not any(_missing(*each) > 0 for each in found):
            return None
        return [_decision((rate, cost), wait, advanced, charged=False) for rate, cost, wait, advanced in found]

    def charge_locally(self, holder: str, charges: Sequence[Charge]) -> list[Decision]:
        """Charge the rates of a holder in this process alone, by the same algorithm."""
        refused = self.refusal(holder, charges)
        if refused is not None:
            return refused
        now = self._now()
        decisions = []
        for rate, cost in charges:
            needed = min(cost, rate.burst) - self._use_advance(holder, rate, cost)
            known = self._knowing(holder, rate)
            known.full_at = max(known.full_at, now) + needed * rate.seconds
            decisions.append(_decision((rate, cost), known.full_at - now, known.advanced, charged=True))
        return decisions

    def _decide(
        self, holder: str, charges: Sequence[Charge], used: Sequence[float], replies: Sequence[Sequence[int]]
    ) -> list[Decision]:
        """Read the answer of the script. `used` is what was taken in advance and is part of the charges."""
        [[charged, *answers]] = replies
        now = self._now()
        decisions = []
        for index, (rate, cost) in enumerate(charges):
            wait, advanced = answers[2 * index] / MICROSECONDS, answers[2 * index + 1] / MICROSECONDS / rate.seconds
            known = self._knowing(holder, rate)
            known.full_at = now + wait
            known.advanced += advanced if charged else used[index]
            if charged:
                known.lapses_at = now + rate.period
            decisions.append(_decision((rate, cost), wait, known.advanced, charged=bool(charged)))
        return decisions

    def _use_advance(self, holder: str, rate: Rate, cost: int) -> float:
        """Take as much of a charge as there is from what was taken in advance, and return it."""
        known = self._known.get((holder, rate.name))
        if known is None or not known.advanced:
            return 0.0
        used = min(known.advanced, cost, rate.burst) if known.lapses_at > self._now() else 0.0
        known.advanced = known.advanced - used if used else 0.0
        return used

    def _knowing(self, holder: str, rate: Rate) -> Known:
        known = self._known.get((holder, rate.name))
        if known is None:
            known = self._known[holder, rate.name] = Known()
        return known

    def _now(self) -> float:
        return self._store.running_loop().time()


def _decision(charge: Charge, wait: float, advanced: float, *, charged: bool) -> Decision:
    """Return the decision of a rate whose bucket is full after so many seconds, beside what was taken in advance."""
    rate, cost = charge
    if wait < 0:
        wait = 0.0
    remaining = max(0, min(rate.burst, int((rate.patience - wait) / rate.seconds + advanced + 1e-6)))
    return Decision(rate, cost, remaining, wait, 0.0 if charged else _missing(rate, cost, wait, advanced))


def _missing(rate: Rate, cost: int, wait: float, advanced: float) -> float:
    """Return the seconds until a charge succeeds, 0 if it does now."""
    missing = max(0.0, wait) + (min(cost, rate.burst) - advanced) * rate.seconds - rate.patience
    return missing if missing > 1e-6 else 0.0


def _retrieve(reply: "asyncio.Future[list[Decision]]") -> None:
    if not reply.cancelled():
        reply.exception()
