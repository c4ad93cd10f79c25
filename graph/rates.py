"""Rates: how much one holder may use in a time, counted in the store, so that all processes count together.

The algorithm is GCRA, the generic cell rate algorithm of ITU-T I.371: a bucket holds `burst` units and refills evenly.
The store keeps one number for each rate of a holder, the time at which the bucket will be full again; a script charges
all rates of a holder at once, or none. The charge travels with the first look-ups of a request (`Store.ask`), so it
costs no round trip of its own. While the store does not answer, each process counts alone.

A process remembers when the buckets that it has seen will be full. Time moves that only forward, so a charge that this
already excludes is refused without asking the store.
"""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from graph import keys
from graph.commands import script
from graph.errors import StoreUnavailable
from graph.store import Store

MICROSECONDS = 1_000_000
REMEMBERED = 20_000


@dataclass(frozen=True, slots=True)
class Rate:
    """`limit` units in `period` seconds, of which `burst` may be used at once."""

    name: str
    limit: int
    period: int
    burst: int

    @property
    def seconds(self) -> float:
        """The seconds in which one unit refills."""
        return self.period / self.limit

    @property
    def patience(self) -> float:
        """The seconds in which an empty bucket refills."""
        return self.burst * self.seconds


Charge: TypeAlias = tuple[Rate, int]
"""A rate and the units to charge, at most its burst; more are charged as the whole burst."""


@dataclass(frozen=True, slots=True)
class Decision:
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


class Charging:
    """A charge under way."""

    def __init__(self, rates: "Rates", holder: str, charges: Sequence[Charge], reply: "asyncio.Future[list[Decision]]"):
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
        self._full_at: OrderedDict[tuple[str, str], float] = OrderedDict()

    def charge(self, holder: str, charges: Sequence[Charge]) -> Charging:
        """Begin to charge the rates of a holder: all, or none if one of them would be exceeded.

        No round trip of its own if other reads are asked for in the same event-loop ticks; none at all if what this
        process remembers excludes the charge already.
        """
        known = self.refusal(holder, charges)
        if known is not None:
            reply: asyncio.Future[list[Decision]] = self._store.running_loop().create_future()
            reply.set_result(known)
            return Charging(self, holder, charges, reply)
        words: list[str | int] = []
        for rate, cost in charges:
            unit = rate.seconds * MICROSECONDS
            words += [rate.name, round(min(cost, rate.burst) * unit), round(rate.burst * unit)]
        command = script("charge_rates").call([keys.rate(holder)], *words)
        reply = self._store.ask([command], partial(self._decide, holder, charges))
        return Charging(self, holder, charges, reply)

    def refusal(self, holder: str, charges: Sequence[Charge]) -> list[Decision] | None:
        """Return the decisions if this process already knows that one of the charges is refused; else None."""
        now = self._now()
        waits = [max(0.0, self._full_at.get((holder, rate.name), 0.0) - now) for rate, _ in charges]
        decisions = [_decision(charge, wait, charged=False) for charge, wait in zip(charges, waits, strict=True)]
        return decisions if any(decision.refused for decision in decisions) else None

    def charge_locally(self, holder: str, charges: Sequence[Charge]) -> list[Decision]:
        """Charge the rates of a holder in this process alone, by the same algorithm."""
        refused = self.refusal(holder, charges)
        if refused is not None:
            return refused
        now = self._now()
        decisions = []
        for rate, cost in charges:
            wait = max(0.0, self._full_at.get((holder, rate.name), 0.0) - now)
            wait += min(cost, rate.burst) * rate.seconds
            self._remember(holder, rate, now + wait)
            decisions.append(_decision((rate, cost), wait, charged=True))
        return decisions

    def _decide(self, holder: str, charges: Sequence[Charge], replies: Sequence[Sequence[int]]) -> list[Decision]:
        """Read the answer of the script."""
        [[charged, *waits]] = replies
        now = self._now()
        decisions = []
        for charge, wait in zip(charges, waits, strict=True):
            seconds = wait / MICROSECONDS
            self._remember(holder, charge[0], now + seconds)
            decisions.append(_decision(charge, seconds, charged=bool(charged)))
        return decisions

    def _remember(self, holder: str, rate: Rate, full_at: float) -> None:
        self._full_at[holder, rate.name] = full_at
        self._full_at.move_to_end((holder, rate.name))
        if len(self._full_at) > REMEMBERED:
            self._full_at.popitem(last=False)

    def _now(self) -> float:
        return self._store.running_loop().time()


def _decision(charge: Charge, wait: float, *, charged: bool) -> Decision:
    """Return the decision of a rate whose bucket is full after so many seconds."""
    rate, cost = charge
    remaining = max(0, math.floor((rate.patience - wait) / rate.seconds + 1e-6))
    missing = 0.0 if charged else wait + min(cost, rate.burst) * rate.seconds - rate.patience
    return Decision(rate, cost, remaining, wait, missing if missing > 1e-6 else 0.0)


def _retrieve(reply: "asyncio.Future[list[Decision]]") -> None:
    if not reply.cancelled():
        reply.exception()
