"""Rates of viewers and addresses: what each operation is charged, and what is said when a rate is used up.

https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/ describes the headers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from graph.rates import Charging, Decision, Rate, Rates
from resolvers.rates import RateLimit
from server.cost import Demand
from server.errors import RateLimited
from server.settings import Settings

MINUTE = 60
HOUR = 3600
MOST_IDS = 100  # of one mutation, which must fit into the burst of writes
PREPARATION = 20  # points for a document that is not prepared yet, beside those for its length
CHARACTERS_A_POINT = 3
DEAREST_PREPARATION = 2_000
SUBSCRIPTION = 50  # points for starting one, beside those of an event
UNITS = {
    "points": "points per minute",
    "writes": "writes per minute",
    "log-ins": "log-ins per minute from one network",
    "sign-ups": "sign-ups per hour from one network",
}


@dataclass(frozen=True, slots=True)
class RatePolicy:
    """The rates that hold while they are on: of a viewer or an anonymous address, and of a network."""

    points: Rate
    writes: Rate
    log_ins: Rate
    sign_ups: Rate

    @classmethod
    def of(cls, settings: Settings) -> "RatePolicy | None":
        """Return the rates of the settings; None if they are off."""
        if not settings.limits_rates:
            return None
        points, writes = settings.points_per_minute, settings.writes_per_minute
        log_ins, sign_ups = settings.log_ins_per_minute, settings.sign_ups_per_hour
        return cls(
            Rate("points", points, MINUTE, max(points, settings.max_cost + DEAREST_PREPARATION)),
            Rate("writes", writes, MINUTE, max(2 * writes, MOST_IDS)),
            Rate("log-ins", log_ins, MINUTE, log_ins),
            Rate("sign-ups", sign_ups, HOUR, sign_ups),
        )


class Meter:
    """Charges the rates of one operation. `holder` is the viewer or the address, `network` always the address."""

    def __init__(self, policy: RatePolicy, rates: Rates, holder: str, network: str) -> None:
        self._policy = policy
        self._rates = rates
        self._holder = holder
        self._network = network
        self._charges: list[Charging] = []
        self._points: Decision | None = None

    def admit(self, points: int) -> None:
        """Raise RateLimited if it is certain that the holder has fewer points left. No round trip."""
        decisions = self._rates.refusal(self._holder, [(self._policy.points, points)])
        if decisions is not None:
            self._points = decisions[0]
            raise _refusal(decisions)

    def charge(self, demand: Demand, preparation: int = 0) -> None:
        """Begin to charge for an operation. No round trip of its own."""
        policy = self._policy
        charges = [(policy.points, demand.points + preparation + 1)]
        if demand.writes:
            charges.append((policy.writes, demand.writes))
        self._charges = [self._rates.charge(self._holder, charges)]
        accounts = [(policy.log_ins, demand.log_ins), (policy.sign_ups, demand.sign_ups)]
        accounts = [charge for charge in accounts if charge[1]]
        if accounts:
            self._charges.append(self._rates.charge(self._network, accounts))

    def charge_refusal(self, points: int) -> None:
        """Charge for a request that is refused without waiting for the outcome."""
        self._rates.charge(self._holder, [(self._policy.points, points)]).forget()

    def forget(self) -> None:
        """Let the charges go on without anybody who waits for them."""
        for charging in self._charges:
            charging.forget()

    async def settle(self) -> None:
        """Wait for the charges. Raises RateLimited if a rate is used up."""
        for charging in self._charges:
            decisions = await charging.decisions()
            if self._points is None:
                self._points = decisions[0]
            if any(decision.refused for decision in decisions):
                raise _refusal(decisions)

    async def state(self) -> RateLimit:
        """Return how much the holder has left after this operation."""
        await self.settle()
        assert self._points is not None  # noqa: S101 - the first charge is that of points
        found = self._points
        full_at = datetime.now(UTC) + timedelta(seconds=found.full_after)
        return RateLimit(found.rate.burst, found.remaining, full_at, found.cost)

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers that tell what is left of the points, if that is known by now."""
        if self._points is None:
            return []
        rate = self._points.rate
        left = b'"points";r=%d;t=%d' % (self._points.remaining, math.ceil(self._points.full_after))
        return [
            (b"ratelimit-policy", b'"points";q=%d;w=%d' % (rate.burst, math.ceil(rate.patience))),
            (b"ratelimit", left),
        ]


def preparation_of(text: str) -> int:
    """Return the points for parsing and validating a document."""
    return min(PREPARATION + len(text) // CHARACTERS_A_POINT, DEAREST_PREPARATION)


def _refusal(decisions: Sequence[Decision]) -> RateLimited:
    refused = max(decisions, key=lambda decision: decision.retry_after)
    rate, seconds = refused.rate, math.ceil(refused.retry_after)
    message = (
        f"The limit of {rate.limit:,} {UNITS[rate.name]} is used up. "
        f"Try again in {seconds} second{'s' if seconds > 1 else ''}."
    )
    return RateLimited(message, seconds, rate.name)
