"""Who asks for an operation, whatever brought it here, and whether their session still lives."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from starlette.types import Receive

from executor.futures import retrieve_exception
from graph import Graph
from resolvers.context import Context, Viewer
from server.auth import BadToken, Tokens
from server.operations.quotas import Quotas, network_of
from server.operations.rates import Meter, RateLimits

EVENTS_AT_ONCE = 4
SESSION_ENDED = "The session has ended: log in again."


@dataclass(slots=True)
class Caller:
    """Who sent a request or opened a socket, and to what. A socket's viewer is known from its first message on.

    `last_event_id` is the cursor of the last event that the client of an
    event stream has received. `receive` tells when the client of a plain request has left.
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
    _event_turns: asyncio.Semaphore | None = None

    @property
    def event_turns(self) -> asyncio.Semaphore:
        """Lets few events of one socket or stream be completed at once."""
        self._event_turns = self._event_turns or asyncio.Semaphore(EVENTS_AT_ONCE)
        return self._event_turns

    @property
    def holder(self) -> str:
        """Whose quota counts: the viewer's, or the network's if anonymous, or if the session is known to have ended.

        So a token that was stolen and then revoked uses up nothing of the user's.
        """
        viewer = self.viewer
        if viewer is None or self.graph.sessions.has_ended(viewer.user, viewer.session):
            return self.network
        return f"user:{viewer.user}"

    @property
    def network(self) -> str:
        """The network that the caller's address belongs to."""
        return network_of(self.address)

    def begin(self) -> Meter | None:
        """Begin an operation: its meter, or None while rates are not limited. `meter` is that of the last one."""
        limits = self.rate_limits
        self.meter = Meter(limits, self.graph.rates, self.holder, self.address) if limits else None
        return self.meter

    def charge_refusal(self, meter: Meter, points: int) -> None:
        """Charge a refused request without waiting, once it is known whether the viewer's session lives."""
        checking = self.ask_session()
        if checking is None:
            meter.charge_refusal(self.holder, points)
        else:
            checking.add_done_callback(partial(self._charge_checked, meter, points))

    def _charge_checked(self, meter: Meter, points: int, checked: "asyncio.Future[bool]") -> None:
        if not checked.cancelled():
            checked.exception()  # marked as retrieved: without the store, the rates are counted locally
            meter.charge_refusal(self.holder, points)

    async def check_session(self) -> None:
        """Raise BadToken if the viewer's session has ended. One round trip, shared with other reads of its tick."""
        checking = self.ask_session()
        if checking and not await checking:
            raise BadToken(SESSION_ENDED)

    def ask_session(self) -> "asyncio.Future[bool] | None":
        """Begin to look whether the viewer's session lives; None without a viewer."""
        viewer = self.viewer
        return self.graph.sessions.is_live(viewer.user, viewer.session) if viewer else None

    def watch_session(self, on_end: Callable[[], None]) -> Callable[[], None]:
        """Call `on_end` as soon as the viewer's session has ended. Returns what stops watching."""
        viewer = self.viewer
        return self.graph.feed.watch(viewer.user, viewer.session, on_end) if viewer else _nothing

    def acquire_stream(self) -> Callable[[], None]:
        """Count a live subscription. Return the function that releases it. Raises GraphQLError beyond the quota."""
        return self.quotas.acquire_stream(self.holder, anonymous=self.viewer is None)

    def acquire_terms(self, terms: int) -> Callable[[], None]:
        """Count the terms of an event filter. Return the function that releases them.

        Raises GraphQLError beyond the quota.
        """
        return self.quotas.acquire_terms(self.holder, terms, anonymous=self.viewer is None)

    def context(self, meter: Meter | None = None) -> Context:
        """Make the context of an operation."""
        watermark = None
        if not self.graph.store.in_order:
            watermark = self.graph.log.watermark()
            watermark.add_done_callback(retrieve_exception)
        return Context(
            self.graph,
            self.viewer,
            self.tokens.issue,
            watermark,
            client=self,
            resume_after=self.last_event_id,
            read_rate_limit=meter.state if meter else None,
        )


def _nothing() -> None:
    """Stop watching nobody."""
