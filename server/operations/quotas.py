"""Quotas: limits on the concurrent use of one process by a user, or by the network of an anonymous address."""

from collections import Counter
from collections.abc import Callable, Collection, Hashable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from graphql import GraphQLError

from server.errors import RATE_LIMITED
from server.operations.event_points import EventPoints
from server.settings import Settings

ANONYMOUS_SHARE = 100  # an anonymous address may hold a hundredth of the filter terms of a user

Release = Callable[[], None]


class QuotaExceeded(Exception):
    """The holder has used up its quota."""


class Quota:
    """Counts the open resources of one kind for each holder, and allows at most `most`."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._held: Counter[Hashable] = Counter()

    def acquire(self, holder: Hashable, weight: int = 1) -> Release:
        """Count `weight` for a holder. Return a function that releases it, to be called once. Raises QuotaExceeded."""
        if self.held_by(holder) + weight > self.most:
            raise QuotaExceeded
        self._held[holder] += weight
        return partial(self._release, holder, weight)

    def held_by(self, holder: Hashable) -> int:
        """Return the weight that one holder has acquired."""
        return self._held.get(holder, 0)

    @property
    def held(self) -> int:
        """The weight that all holders have acquired."""
        return self._held.total()

    def _release(self, holder: Hashable, weight: int) -> None:
        self._held[holder] -= weight
        if not self._held[holder]:
            del self._held[holder]


@dataclass(frozen=True, slots=True)
class Quotas:
    """The quotas of a process: WebSockets, live subscriptions, and the terms of their event filters.

    `streams_of_field` counts the live subscriptions to each field. `event_points` are those of the events of
    subscriptions; None if rates are not limited.
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
        """Return the quotas in the settings. Anonymous subscriptions have their own only while rates are limited."""
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
        """Count a live subscription to root fields. Return a function that releases it.

        Raises GraphQLError beyond the quotas.
        """
        quota = self.anonymous_streams if anonymous else self.streams
        with ExitStack() as acquired:
            try:
                acquired.callback(quota.acquire(holder))
            except QuotaExceeded:
                message = f"You have {quota.most} live subscriptions, which is the limit. End one first."
                raise GraphQLError(message, extensions={"code": RATE_LIMITED}) from None
            for field in fields:
                try:
                    acquired.callback(self.streams_of_field.acquire((holder, field)))
                except QuotaExceeded:
                    message = (
                        f"You have {self.streams_of_field.most} live subscriptions to '{field}', which is the limit of "
                        "one field. End one first."
                    )
                    raise GraphQLError(message, extensions={"code": RATE_LIMITED}) from None
            return acquired.pop_all().close

    def acquire_terms(self, holder: Hashable, terms: int, *, anonymous: bool) -> Release:
        """Count the terms of an event filter. Return a function that releases them.

        Raises GraphQLError beyond the quota.
        """
        quota = self.anonymous_terms if anonymous else self.terms
        try:
            return quota.acquire(holder, terms)
        except QuotaExceeded:
            message = (
                f"Your event filters have {quota.held_by(holder):,} terms and this one has {terms:,}; "
                f"the limit is {quota.most:,}{' for anonymous clients' if anonymous else ''}. "
                "End a subscription first, or use a smaller filter."
            )
            raise GraphQLError(message, extensions={"code": RATE_LIMITED}) from None
