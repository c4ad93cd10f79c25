"""Who asks for an operation, whatever brought it here, and whether their session still lives."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from graphql import GraphQLError

from graph import Graph
from resolvers.bulk import look_at
from resolvers.context import Context, Viewer
from server.auth import BadToken, Tokens
from server.errors import RATE_LIMITED
from server.quotas import Quota, QuotaExceeded, holder_of

SESSION_ENDED = "The session has ended: log in again."


@dataclass(slots=True)
class Resumption:
    """Where an event stream is to go on, as its client says, and, once it runs, where it is, as its context says."""

    after: str | None
    context: Context | None = None

    @property
    def position(self) -> str | None:
        """The cursor of the event that was streamed last, if it has one."""
        return None if self.context is None else self.context.position


@dataclass(slots=True)
class Caller:
    """Who sent a request or opened a socket, and to what. A socket's viewer is known from its first message on.

    `sockets` and `streams` count what callers hold open; `resumption` is only for event streams.
    """

    graph: Graph
    tokens: Tokens
    sockets: Quota
    streams: Quota
    request_id: str
    address: str
    viewer: Viewer | None = None
    authorization: str | None = None
    resumption: Resumption | None = None

    @property
    def holder(self) -> int | str:
        """Whose quota counts: the viewer's, or the address's if anonymous."""
        return self.viewer.user if self.viewer else holder_of(self.address)

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

    def hold_stream(self) -> Callable[[], None]:
        """Count a live subscription in. Returns what counts it out. Raises GraphQLError if there are too many."""
        try:
            return self.streams.hold(self.holder)
        except QuotaExceeded:
            message = f"You have {self.streams.most} live subscriptions, as many as one may: end one first."
            raise GraphQLError(message, extensions={"code": RATE_LIMITED}) from None

    def context(self) -> Context:
        """Make the context of an operation."""
        resumption = self.resumption
        drained = None
        if not self.graph.store.in_order:
            drained = self.graph.log.drained()
            drained.add_done_callback(look_at)
        after = resumption.after if resumption else None
        context = Context(self.graph, self.viewer, self.tokens.issue, drained, resume_after=after)
        if resumption:
            resumption.context = context
        return context


def _nothing() -> None:
    """Stop watching nobody."""
