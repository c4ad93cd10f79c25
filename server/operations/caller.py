"""Callers: the sender of a request or the client of a WebSocket, and whether its session is still live."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import EllipsisType
from typing import Any

from graphql import GraphQLError
from starlette.types import Receive
from strawberry.types import ExecutionResult

from graph import Graph
from graph.archive.usage import Usage, used_by
from graph.feed.handover import Courier
from graph.model import Credentials
from resolvers.context import Context, Viewer
from server.auth import BadToken, Tokens
from server.errors import with_codes
from server.operations.quotas import Quotas
from server.operations.rates import Meter, RateLimits
from server.transport.networks import network_of, site_of

SESSION_ENDED = "The session has ended. Log in again."


@dataclass(slots=True)
class Caller:
    """The sender of a request or the client of a WebSocket, whose viewer is unknown until its first message.

    `last_event_id` is the cursor of the last event that the client of an event stream has received. `receive` reports
    when the client of a JSON request disconnects. `meter` is the meter of the last operation. `from_cookie` is True if
    the access token was in a cookie, and `keeps_cookie` if new tokens are sent in a cookie. `session` is the session
    that the operation started, None if the operation ended the viewer's session, and `...` otherwise. `user_agent` is
    the request's `User-Agent` header, truncated to the length that a session stores.
    """

    graph: Graph
    tokens: Tokens
    quotas: Quotas
    request_id: str
    address: str
    viewer: Viewer | None = None
    authorization: str | None = None
    last_event_id: str | None = None
    rate_limits: RateLimits | None = None
    meter: Meter | None = None
    receive: Receive | None = None
    from_cookie: bool = False
    keeps_cookie: bool = False
    user_agent: str | None = None
    session: Credentials | EllipsisType | None = ...

    @property
    def holder(self) -> str:
        """The key under which quotas and rates are counted: the user, or the caller's network.

        The network is used if there is no viewer or the viewer's session has ended. A stolen token that was revoked
        therefore cannot use up its user's limits.
        """
        viewer = self.viewer
        if viewer is None or self.graph.sessions.has_ended(viewer.user, viewer.session):
            return self.network
        return f"user:{viewer.user}"

    @property
    def network(self) -> str:
        """The network of the caller's address."""
        return network_of(self.address)

    def usage(self, meter: Meter | None, prepaid: int) -> Usage:
        """Return a counter for an operation's archive reads. Points beyond `prepaid` are later charged to `meter`."""

        def charge(points: int) -> None:
            if meter is not None and points > prepaid:
                meter.owe(points - prepaid)

        return self._usage(charge)

    def _usage(self, charge: Callable[[int], None]) -> Usage:
        holder = self.holder
        if holder == self.network:
            return Usage(site_of(self.address), anonymous=True, charge=charge)
        return Usage(holder, anonymous=False, charge=charge)

    @contextmanager
    def reading_for_event(self, prepaid: int = 0) -> Iterator[None]:
        """Count the archive reads of the `with` block, which serves an event of a subscription.

        Points beyond `prepaid` are charged to the holder's event points afterwards.
        """
        usage = self._usage(lambda points: self.charge_event(max(0, points - prepaid)))
        try:
            with used_by(usage):
                yield
        finally:
            usage.end()

    def charge_event(self, points: int) -> None:
        """Charge an event of a subscription to the holder's event points, which are separate from request points."""
        if self.quotas.event_points is not None:
            self.quotas.event_points.charge(self.holder, points)

    def event_delay(self) -> float:
        """Return the seconds until the caller's next event may be executed, or 0.0 if the holder has no debt."""
        return 0.0 if self.quotas.event_points is None else self.quotas.event_points.delay(self.holder)

    async def wait_for_event_points(self) -> None:
        """Wait until the caller's next event may be executed."""
        if self.quotas.event_points is not None:
            await self.quotas.event_points.wait(self.holder)

    def start_meter(self) -> Meter | None:
        """Return the meter of a new operation, or None if rates are not limited."""
        limits = self.rate_limits
        self.meter = Meter(limits, self.graph.rates, self.holder, self.address) if limits else None
        return self.meter

    def charge_refused_request(self, meter: Meter, points: int) -> None:
        """Charge the points of a refused request in the background.

        The session is checked first, because an ended session changes the holder.
        """
        checking = self.start_session_check()
        if checking is None:
            meter.charge_points(self.holder, points)
        else:
            checking.add_done_callback(partial(self._charge_checked, meter, points))

    def _charge_checked(self, meter: Meter, points: int, checked: "asyncio.Future[bool]") -> None:
        if not checked.cancelled():
            checked.exception()  # mark the exception as retrieved: during an outage, rates are counted locally
            meter.charge_points(self.holder, points)

    async def check_session(self) -> None:
        """Raise BadToken if the viewer's session has ended. One round trip, shared with other reads."""
        checking = self.start_session_check()
        if checking and not await checking:
            raise BadToken(SESSION_ENDED)

    def start_session_check(self) -> "asyncio.Future[bool] | None":
        """Check the viewer's session. Return a future that resolves to True if it is live, or None without a viewer."""
        viewer = self.viewer
        return self.graph.sessions.is_live(viewer.user, viewer.session) if viewer else None

    def watch_session(self, on_end: Callable[[], None]) -> Callable[[], None]:
        """Call `on_end` when the viewer's session ends. Return a function that stops watching."""
        viewer = self.viewer
        return self.graph.feed.watch(viewer.user, viewer.session, on_end) if viewer else _nothing

    def acquire_stream(self, fields: Collection[str]) -> Callable[[], None]:
        """Count a live subscription to these root fields. Return a function that releases it.

        Raises GraphQLError if a quota would be exceeded.
        """
        return self.quotas.acquire_stream(self.holder, fields, anonymous=self.viewer is None)

    def acquire_terms(self, terms: int) -> Callable[[], None]:
        """Count the terms of an event filter. Return a function that releases them.

        Raises GraphQLError if the quota would be exceeded.
        """
        return self.quotas.acquire_terms(self.holder, terms, anonymous=self.viewer is None)

    def note_session(self, session: Credentials | None) -> None:
        """Record that an operation started a session, or, if `session` is None, ended the viewer's session."""
        self.session = session

    def issue_token(self, session: Credentials) -> str | None:
        """Return the access token of a session for the response data, or None if a cookie carries the token."""
        return None if self.keeps_cookie else self.tokens.issue(session)

    def result(self, data: dict[str, Any] | None, errors: Sequence[GraphQLError] | None) -> ExecutionResult:
        """Return a result whose errors contain error codes and the request id."""
        return ExecutionResult(data, with_codes(errors, self.request_id) if errors else None)

    def failure(self, error: Exception) -> ExecutionResult:
        """Return the result of an operation that has failed as a whole."""
        known = error if isinstance(error, GraphQLError) else GraphQLError(str(error), original_error=error)
        return self.result(None, [known])

    def context(self, meter: Meter | None = None, courier: Courier | None = None) -> Context:
        """Return the resolver context of an operation. `courier` delivers the updates of a subscription, if given."""
        return Context(
            self.graph,
            self.viewer,
            self.issue_token,
            client=self,
            resume_after=self.last_event_id,
            read_rate_limit=meter.balance if meter else None,
            courier=courier,
        )


def _nothing() -> None:
    """Do nothing: without a viewer, there is no session to watch."""
