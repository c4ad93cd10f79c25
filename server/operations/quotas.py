"""How much one viewer, or one anonymous address, may hold open in this process at a time."""

import ipaddress
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache, partial

from server.settings import Settings

PREFIX_OF_ONE = 64  # bits: a client with IPv6 usually has such a network to itself
ANONYMOUS_SHARE = 100  # an anonymous address may hold a hundredth of the filter terms of a viewer


class QuotaExceeded(Exception):
    """Somebody holds as many as they may."""


class Quota:
    """Counts what is held open, of one kind, by whom; lets nobody hold more than `most`.

    What counts for more than one has a weight.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._held: Counter[Hashable] = Counter()

    def hold(self, holder: Hashable, weight: int = 1) -> Callable[[], None]:
        """Count something in, by its weight. Returns what counts it out, to be called once. Raises QuotaExceeded."""
        if self.held_by(holder) + weight > self.most:
            raise QuotaExceeded
        self._held[holder] += weight
        return partial(self._release, holder, weight)

    def held_by(self, holder: Hashable) -> int:
        """Return how much one holder holds."""
        return self._held.get(holder, 0)

    @property
    def held(self) -> int:
        """How much is held by all together."""
        return self._held.total()

    def _release(self, holder: Hashable, weight: int) -> None:
        self._held[holder] -= weight
        if not self._held[holder]:
            del self._held[holder]


@dataclass(frozen=True, slots=True)
class Quotas:
    """The quotas of a process: WebSockets, live subscriptions, and the terms of their event filters."""

    sockets: Quota
    streams: Quota
    anonymous_streams: Quota
    terms: Quota
    anonymous_terms: Quota

    @classmethod
    def of(cls, settings: Settings) -> "Quotas":
        """Return the quotas of the settings. Anonymous subscriptions count separately only while rates are limited."""
        streams = Quota(settings.max_streams)
        anonymous = Quota(min(settings.max_streams, settings.max_anonymous_streams))
        return cls(
            sockets=Quota(settings.max_streams),
            streams=streams,
            anonymous_streams=anonymous if settings.limits_rates else streams,
            terms=Quota(settings.max_filter_terms),
            anonymous_terms=Quota(max(1, settings.max_filter_terms // ANONYMOUS_SHARE)),
        )


@lru_cache(maxsize=10_000)
def holder_of(host: str) -> str:
    """Tell who stands for an anonymous client at this address: with IPv6, its network."""
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return host
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address), PREFIX_OF_ONE), strict=False))
