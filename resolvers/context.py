"""The context of a request: the viewer, the social graph, and the values loaded so far."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from types import EllipsisType
from typing import Any, Protocol, TypeVar

from executor.batches import Batches
from graph import Graph
from graph.feed.handover import Courier
from graph.model import Credentials
from resolvers.errors import Unauthenticated
from resolvers.loaders import Loaders, lazy

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Viewer:
    """The authenticated user: their id, the id of their session, and when the access token expires.

    The record of the GraphQL type `Viewer`.
    """

    user: int
    session: str
    expires_at: datetime


class Client(Protocol):
    """The client that sent an operation."""

    @property
    def network(self) -> str:
        """The IPv4 address or the IPv6 network of the client."""

    @property
    def holder(self) -> str | None:
        """The key of the viewer or network whose streams share a limit on concurrent replays, or None for no limit."""

    @property
    def user_agent(self) -> str | None:
        """The name of the client's program, from the `User-Agent` header, or None if there is no such header."""

    def event_delay(self) -> float:
        """Return the delay of the client's next live event, in seconds; more than 0 after many events."""

    def acquire_terms(self, terms: int) -> Callable[[], None]:
        """Count an event filter's terms. Return a function that releases them. Raises if the client has too many."""

    def note_session(self, session: Credentials | None) -> None:
        """Record that the operation started this session or, if None, that it ended the viewer's session."""


@dataclass(frozen=True, slots=True)
class LocalClient:
    """A client in the same process, without limits."""

    network: str = ""
    holder: str | None = None
    user_agent: str | None = None

    def event_delay(self) -> float:
        """Return 0.0."""
        return 0.0

    def acquire_terms(self, terms: int) -> Callable[[], None]:
        """Return a function that does nothing."""
        return _nothing

    def note_session(self, session: Credentials | None) -> None:
        """Do nothing: the token is in the payload."""


class Context:
    """The context of one request. A subscription has one context for all events; `forget` clears it after each.

    `issue_token` returns the access token of a session; None if it must not be in the payload. `resume_after` is the
    cursor from a reconnecting client's `Last-Event-ID`; it takes precedence over the `after` argument of a
    subscription. `read_rate_limit` reads the client's rate limit, and is None if there are no rate limits. `courier`
    may deliver updates of a subscription. `users_created` counts successful sign-ups. `unshown` are the ids of users,
    posts and lists that this request has changed, but whose new state the store cannot show yet (`graph.unshown`).
    Requires a running event loop.
    """

    def __init__(
        self,
        graph: Graph,
        viewer: Viewer | None,
        issue_token: Callable[[Credentials], str | None],
        *,
        client: "Client | None" = None,
        resume_after: str | None = None,
        read_rate_limit: Callable[[], Awaitable[Any]] | None = None,
        courier: Courier | None = None,
    ) -> None:
        self.graph = graph
        self.viewer = viewer
        self.issue_token = issue_token
        self.client = client or LocalClient()
        self.resume_after = resume_after
        self.read_rate_limit = read_rate_limit
        self.courier = courier
        self.users_created = 0
        self.unshown: set[int] = set()
        self._sender: Viewer | EllipsisType | None = ...
        self._watermark: int | None = None
        self._shared_context: Context | None = None

    @lazy
    def loaders(self) -> Loaders:
        """Return the dataloaders, which hold the values loaded so far."""
        return self._new_loaders()

    @lazy
    def batches(self) -> Batches:
        """Return the dataloaders of batch resolvers in ordinary execution."""
        return Batches()

    def _new_loaders(self) -> Loaders:
        if self._shared_context is not None:
            return self._shared_context.loaders
        return Loaders(self.graph, self.viewer_id, unshown=self.unshown)

    def share_look_ups_of(self, other: "Context") -> None:
        """Share the values that another context of the same viewer loads, until `forget`."""
        self.forget()
        self._shared_context = other

    @property
    def viewer_id(self) -> int | None:
        """The viewer's user id, or None for an anonymous request."""
        return None if self.viewer is None else self.viewer.user

    def require_viewer(self) -> Viewer:
        """Return the viewer. Raises Unauthenticated if there is none."""
        if self.viewer is None:
            raise Unauthenticated
        return self.viewer

    def act_as_logged_in(self, viewer: Viewer) -> None:
        """Resolve the payload of the current mutation for the viewer that the mutation has logged in.

        Later fields are resolved for the sender of the document again (`act_as_sender`). The whole operation counts
        towards the sender's limits.
        """
        self._sender = self.viewer
        self._act_as(viewer)

    def act_as_sender(self) -> None:
        """Resolve later fields for the sender of the document again, after `act_as_logged_in`."""
        if self._sender is not ...:
            self._act_as(self._sender)
            self._sender = ...

    def end_session(self) -> Viewer:
        """Remove and return the viewer, so that later fields of the document have no viewer.

        Raises Unauthenticated if there is none.
        """
        viewer = self.require_viewer()
        self._act_as(None)
        return viewer

    def _act_as(self, viewer: Viewer | None) -> None:
        self.forget()  # the loaders hold what another viewer may see, and whom that viewer blocks
        self.viewer = viewer

    def start(self, work: Coroutine[Any, Any, V]) -> "asyncio.Task[V]":
        """Start a coroutine as a task."""
        return self.graph.store.running_loop().create_task(work)

    async def watermark(self) -> int:
        """Return a projection watermark, cached in this process, that was read before `loaders` read any page.

        A stream resumes at this watermark. If it were newer than a page, posts missing from the page would be skipped.
        """
        if self._shared_context is not None:
            return await self._shared_context.watermark()
        if not self.note_watermark():
            watermark = await self.graph.log.recent_watermark()
            if self._watermark is None:
                self._watermark = watermark
        assert self._watermark is not None  # noqa: S101 - noted
        return self._watermark

    def note_watermark(self) -> bool:
        """Record the watermark if it is available without waiting. Return True if it is known."""
        if self._shared_context is not None:
            return self._shared_context.note_watermark()
        if self._watermark is None:
            self._watermark = self.graph.log.recent_watermark_now()
        return self._watermark is not None

    def forget(self) -> None:
        """Drop all loaded values: after a write, and after each event of a subscription."""
        self.__dict__.pop("loaders", None)
        self.__dict__.pop("batches", None)
        self._watermark = None
        self._shared_context = None


def _nothing() -> None:
    pass
