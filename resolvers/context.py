"""The context of a request: the viewer, the social graph, and the values loaded so far."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from executor.batches import Batches
from executor.futures import derive
from graph import Graph
from graph.model import Session
from resolvers.errors import Unauthenticated
from resolvers.loaders import Loaders

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Viewer:
    """The authenticated user: their id, the id of their session, and when the access token expires."""

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
        """The viewer or network that shares a limit of concurrent replays between its streams; None for no limit."""

    def acquire_terms(self, terms: int) -> Callable[[], None]:
        """Reserve terms of an event filter. Return a function that releases them. Raises if the client has too many."""


@dataclass(frozen=True, slots=True)
class LocalClient:
    """A client in the same process, without limits."""

    network: str = ""
    holder: str | None = None

    def acquire_terms(self, terms: int) -> Callable[[], None]:
        """Return a function that does nothing."""
        return _nothing


class Context:
    """The context of one request. A subscription has one, which `forget` clears before each event.

    `issue_token` returns the access token of a session. `watermark` is the projection watermark, if the server already
    reads it with the session check, which saves a round trip. `resume_after` is the cursor from a reconnecting client's
    `Last-Event-ID`; it takes precedence over the `after` argument of a subscription. `read_rate_limit` reads the
    client's rate limit, and is None if there are no rate limits. `users_created` counts successful sign-ups. Requires a
    running event loop.
    """

    def __init__(
        self,
        graph: Graph,
        viewer: Viewer | None,
        issue_token: Callable[[Session], str],
        watermark: "asyncio.Future[int] | None" = None,
        *,
        client: "Client | None" = None,
        resume_after: str | None = None,
        read_rate_limit: Callable[[], Awaitable[Any]] | None = None,
    ) -> None:
        self.graph = graph
        self.viewer = viewer
        self.issue_token = issue_token
        self.client = client or LocalClient()
        self.resume_after = resume_after
        self.read_rate_limit = read_rate_limit
        self.users_created = 0
        self._watermark = watermark
        self.loaders = Loaders(graph, self.viewer_id)
        self.batches = Batches()

    @property
    def viewer_id(self) -> int | None:
        """The viewer's user id; None for anonymous requests."""
        return None if self.viewer is None else self.viewer.user

    def require_viewer(self) -> Viewer:
        """Return the viewer. Raises Unauthenticated if there is none."""
        if self.viewer is None:
            raise Unauthenticated
        return self.viewer

    def end_session(self) -> Viewer:
        """Remove the viewer from the context and return it, so that later fields of the document have no viewer.

        Raises Unauthenticated if there is none.
        """
        viewer = self.require_viewer()
        self.viewer = None
        return viewer

    def start(self, work: Coroutine[Any, Any, V]) -> "asyncio.Task[V]":
        """Start a coroutine as a task."""
        return self.graph.store.running_loop().create_task(work)

    def watermark(self) -> Awaitable[int]:
        """Return a projection watermark that is older than every page of this request.

        Call this method before requesting a page. If the store does not answer in order, await the watermark first. It
        is read once: one round trip, or none if the server has already started to read it.
        """
        if self._watermark is None:
            self._watermark = self.graph.log.watermark()
        return derive(self._watermark, int)

    def forget(self) -> None:
        """Drop all loaded values: after a write, and before each event of a subscription."""
        self._watermark = None
        self.loaders = Loaders(self.graph, self.viewer_id)
        self.batches = Batches()


def _nothing() -> None:
    pass
