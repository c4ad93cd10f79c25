"""Rate limits: what each operation is charged, and the errors and headers that report the limits.

https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/ describes the headers.
"""

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from graph.rates import Charge, Decision, PendingCharge, Rate, Rates
from resolvers.rates import RateLimit
from server.errors import RateLimited
from server.operations.cost import MAX_WRITES, OperationCost
from server.settings import Settings
from server.transport.networks import network_of, site_of

MINUTE = 60
HOUR = 3600
PREPARATION = 20  # points for preparing a new document, in addition to those for its length
CHARACTERS_PER_POINT = 3
MAX_PREPARATION = 2_000
SUBSCRIPTION = 50  # points for starting a subscription, in addition to those of an event
ADVANCE_SHARE = 50  # a fiftieth of a bucket is taken in advance, so that most requests need no charge in the store
SITE_SHARE = 16  # all networks of an IPv6 site together have the points of this many networks
MAX_HOLDERS = 1_000  # holders whose refusals are counted for one log line
NETWORK_RATES = frozenset({"log-ins", "sign-ups"})
UNITS = {
    "points": "points per minute",
    "writes": "writes per minute",
    "log-ins": "log-ins per minute from one network",
    "sign-ups": "sign-ups per hour from one network",
}

logger = logging.getLogger("fanline.server")


class RateLimits:
    """The rate limits of a server, and counts of refusals.

    `points` and `writes` apply to a user or to the network of an anonymous client, `log_ins` and `sign_ups` always to
    the network, and `site_points` to all anonymous networks of one IPv6 site together. `policy` is the value of the
    header that describes the rate limit for points. `refused` counts refusals by the name of the rate.
    """

    def __init__(self, points: Rate, writes: Rate, log_ins: Rate, sign_ups: Rate) -> None:
        self.points = points
        self.site_points = replace(
            points,
            limit=SITE_SHARE * points.limit,
            burst=SITE_SHARE * points.burst,
            advance=SITE_SHARE * points.advance,
        )
        self.writes = writes
        self.log_ins = log_ins
        self.sign_ups = sign_ups
        self.policy = b'"points";q=%d;w=%d' % (points.burst, math.ceil(points.full_seconds))
        self.refused: Counter[str] = Counter()
        self._holders: Counter[str] = Counter()
        self._logged_at = -math.inf

    @classmethod
    def of(cls, settings: Settings) -> "RateLimits | None":
        """Return the rate limits that the settings define, or None if rate limits are disabled."""
        if not settings.limits_rates:
            return None
        points, writes = settings.points_per_minute, settings.writes_per_minute
        log_ins, sign_ups = settings.log_ins_per_minute, settings.sign_ups_per_hour
        burst = max(points, settings.max_cost + MAX_PREPARATION)
        return cls(
            Rate("points", points, MINUTE, burst, burst // ADVANCE_SHARE),
            Rate("writes", writes, MINUTE, max(2 * writes, MAX_WRITES)),
            Rate("log-ins", log_ins, MINUTE, log_ins),
            Rate("sign-ups", sign_ups, HOUR, sign_ups),
        )

    def record(self, rate: str, holder: str) -> None:
        """Count a refusal. At most once a minute, log the holders with the most refusals."""
        self.refused[rate] += 1
        if holder in self._holders or len(self._holders) < MAX_HOLDERS:
            self._holders[holder] += 1
        now = time.monotonic()
        if now - self._logged_at >= MINUTE:
            found = ", ".join(f"{name} ({count:,})" for name, count in self._holders.most_common(10))
            logger.warning(
                "Operations refused by rate limits: %s; by user or network: %s", self._holders.total(), found
            )
            self._holders.clear()
            self._logged_at = now


class Meter:
    """Charges one operation to the rate limits. `holder` is the user, or the network of an anonymous client.

    `preparation` is the number of points for parsing and validating the operation's document; 0 if it was cached.
    """

    __slots__ = ("_address", "_charges", "_limits", "_points", "_rates", "holder", "preparation")

    def __init__(self, limits: RateLimits, rates: Rates, holder: str, address: str) -> None:
        self._limits = limits
        self._rates = rates
        self.holder = holder
        self.preparation = 0
        self._address = address
        self._charges: list[PendingCharge] = []
        self._points: Decision | None = None

    def begin_preparation(self, text: str) -> None:
        """Add the points for preparing a new document to the charge.

        Raises RateLimited if this process knows that the holder has too few points left. No round trip.
        """
        self.preparation = preparation_points(text)
        decisions = self._rates.refusal(self.holder, [(self._limits.points, self.preparation + 1)])
        if decisions is not None:
            self._points = decisions[0]
            raise self._refusal(decisions)

    def charge(self, cost: OperationCost, more: int = 0) -> None:
        """Start charging an operation's cost plus `more` points, in a round trip that other reads share.

        `settle` waits for the result. Raises RateLimited if this process already knows that a rate limit is used up.
        """
        points = cost.points + self.preparation + more + 1
        self._charge_holder(cost, points)
        site, rate = self._site, self._limits.site_points
        if site is not None and self._rates.spend(site, rate, points) is None:
            self._begin(site, [(rate, points)])

    def _charge_holder(self, cost: OperationCost, points: int) -> None:
        """Charge points and writes to the holder, and log-ins and sign-ups to the caller's network."""
        limits = self._limits
        if not cost.writes:
            self._points = self._rates.spend(self.holder, limits.points, points)
            if self._points is not None:
                return
        charges = [(limits.points, points)]
        if cost.writes:
            charges.append((limits.writes, cost.writes))
        self._begin(self.holder, charges)
        accounts = [(limits.log_ins, cost.log_ins), (limits.sign_ups, cost.sign_ups)]
        accounts = [charge for charge in accounts if charge[1]]
        if accounts:
            self._begin(network_of(self._address), accounts)

    @property
    def _site(self) -> str | None:
        """The IPv6 site of an anonymous client, or None for IPv4 clients and users."""
        site = site_of(self._address)
        return site if site != self.holder == network_of(self._address) else None

    def _begin(self, holder: str, charges: Sequence[Charge]) -> None:
        charging = self._rates.charge(holder, charges)
        if charging.refusal is not None:
            if self._points is None:
                self._points = charging.refusal[0]
            raise self._refusal(charging.refusal)
        self._charges.append(charging)

    def charge_points(self, holder: str, points: int) -> None:
        """Charge points to a holder in the background, ignoring the result."""
        self._rates.charge(holder, [(self._limits.points, points)]).forget()

    def owe(self, points: int) -> None:
        """Charge points that an operation used beyond its cost. The debt delays later operations, not this one."""
        self._rates.owe(self.holder, self._limits.points, points)
        if self._site is not None:
            self._rates.owe(self._site, self._limits.site_points, points)

    async def give_back_sign_ups(self, count: int) -> None:
        """Give back sign-ups that were charged but created no user.

        Waits for the round trip, so that the next request can use them.
        """
        if count:
            await asyncio.wait([self._rates.give_back(network_of(self._address), self._limits.sign_ups, count)])

    def detach(self) -> None:
        """Let pending charges complete in the background, ignoring their results."""
        for charging in self._charges:
            charging.forget()

    @property
    def pending(self) -> bool:
        """True if `settle` has charges to wait for."""
        return bool(self._charges)

    async def settle(self) -> None:
        """Wait for the charges. Raises RateLimited if a rate limit is used up."""
        for charging in self._charges:
            decisions = await charging.decisions()
            if self._points is None:
                self._points = decisions[0]
            if any(decision.refused for decision in decisions):
                raise self._refusal(decisions)

    async def balance(self) -> RateLimit:
        """Return the points that the holder has left after this operation. Raises RateLimited if a limit is used up."""
        await self.settle()
        assert self._points is not None  # noqa: S101 - the first charge is of points
        found = self._points
        full_at = datetime.now(UTC) + timedelta(seconds=found.full_after)
        return RateLimit(found.rate.burst, found.remaining, full_at, found.cost)

    def record(self, refusal: RateLimited) -> None:
        """Count a refusal in the metrics and the log."""
        self._limits.record(refusal.rate, network_of(self._address) if refusal.rate in NETWORK_RATES else self.holder)

    def _refusal(self, decisions: Sequence[Decision]) -> RateLimited:
        refused = max(decisions, key=lambda decision: decision.retry_after)
        rate, seconds = refused.rate, math.ceil(refused.retry_after)
        message = f"The limit of {rate.limit:,} {UNITS[rate.name]} has been reached. Try again in {in_words(seconds)}."
        limited = RateLimited(message, seconds, rate.name)
        self.record(limited)
        return limited

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the response headers with the balance of points, or no headers if the balance is unknown."""
        if self._points is None:
            return []
        left = b'"points";r=%d;t=%d' % (self._points.remaining, int(self._points.full_after) + 1)
        return [
            (b"ratelimit-policy", self._limits.policy),
            (b"ratelimit", left),
        ]


def in_words(seconds: int) -> str:
    """Return a waiting time as text, rounded up: in hours from 2 hours on, in minutes from 2 on, else in seconds."""
    for unit, name in ((HOUR, "hours"), (MINUTE, "minutes")):
        if seconds >= 2 * unit:
            return f"{-(-seconds // unit)} {name}"
    return "1 second" if seconds == 1 else f"{seconds} seconds"


def preparation_points(text: str) -> int:
    """Return the points that a holder is charged for parsing and validating a new document."""
    return min(PREPARATION + len(text) // CHARACTERS_PER_POINT, MAX_PREPARATION)
