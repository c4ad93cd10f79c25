"""What resolvers know of the request they answer: who asks, the social graph, and what was loaded so far."""

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
    """Who asks, as their token says: the person's id, the session's id, and when the token ends."""

    user: int
    session: str
    expires_at: datetime


class Client(Protocol):
    """Where an operation comes from."""

    @property
    def network(self) -> str:
        """The address, or in IPv6 its network."""

    @property
    def holder(self) -> str | None:
        """Who shares the turns of replays with other streams: the viewer or the network; None shares with nobody."""

    def hold_terms(self, terms: int) -> Callable[[], None]:
        """Count an event filter in by its terms. Returns what counts it out. Raises if the client holds too many."""


@dataclass(frozen=True, slots=True)
class LocalClient:
    """A client in this process, which has no limits."""

    network: str = ""
    holder: str | None = None

    def hold_terms(self, terms: int) -> Callable[[], None]:
        """Return what does nothing."""
        return _nothing


class Context:
    """The context of one request, or of one subscription: fresh for each of its events.

    `issue_token` makes the access token of a session. `drained` will give the watermark: a
    server that has asked for it beside the session check spares a round trip; without it, the mark is read when it is
    needed. `resume_after` is the cursor that a reconnecting client has sent along, which a
    subscription prefers to the `after` of its document; `position` is the cursor of the event under way.
    `client` is where the operation comes from. `read_rate_limit` reads its rate limit; None while rates are not
    limited. `users_created` counts the sign-ups that succeeded. Build it inside a running event loop.
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
        self.position: str | None = None
        self.users_created = 0
        self._drained = watermark
        self.loaders = Loaders(graph, self.viewer_id)
        self.batches = Batches()

    @property
    def viewer_id(self) -> int | None:
        """The id of the person who asks; None if anonymous."""
        return None if self.viewer is None else self.viewer.user

    def require_viewer(self) -> Viewer:
        """Give the viewer. Raises Unauthenticated if there is none."""
        if self.viewer is None:
            raise Unauthenticated
        return self.viewer

    def end_session(self) -> Viewer:
        """Forget the viewer and return who it was. Raises Unauthenticated if there is none.

        Later fields of the document find no viewer.
        """
        viewer = self.require_viewer()
        self.viewer = None
        return viewer

    def start(self, work: Coroutine[Any, Any, V]) -> "asyncio.Task[V]":
        """Begin work as a task."""
        return self.graph.store.running_loop().create_task(work)

    def watermark(self) -> Awaitable[int]:
        """Give a watermark older than every page that this request has read: ask before asking for one.

        Where the store does not answer in order, wait for it before that. It is read once. One round trip, or none if
        the server has begun to read it.
        """
        if self._drained is None:
            self._drained = self.graph.log.watermark()
        return derive(self._drained, int)

    def forget(self) -> None:
        """Drop all that was loaded: after a write, and before each event of a subscription."""
        self._drained = None
        self.loaders = Loaders(self.graph, self.viewer_id)
        self.batches = Batches()


def _nothing() -> None:
    pass
