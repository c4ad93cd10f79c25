"""The interface of the sources from which subscriptions get their updates."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from typing import Generic, TypeAlias

from graph.feed.buffer import Buffer, C
from graph.feed.updates import Gap
from graph.log.events import Event

ReadUnprojected: TypeAlias = Callable[[Collection[int]], AsyncGenerator[Sequence[Event]]]
"""Yields the events that may not be projected yet and that affect the page that a client refetches after an update.

These are the events, up to the update, of the given authors' posts, the viewer's follows, mutes and blocks, and all
suspensions and deletions of users.
"""


class Source(ABC, Generic[C]):
    """Selects the events of the log that one subscriber gets, and turns them into updates.

    During the replay, the subscription passes events to `select` and `updates_of`. `register` adds the buffer of a live
    subscription to an index, in which the feed looks up the buffers that get an event.
    """

    has_state: bool = False
    """Whether the selection depends on stored state that events change. `load` reads it; `apply` updates it."""

    viewer: int | None = None
    """The id of the user who subscribes, or None if anonymous."""

    reads_posts: bool = False
    """Whether the selection depends on the content of posts: on their words or their location."""

    prepares: tuple[type, ...] = ()
    """The types of updates for which `before_update` must be called."""

    async def load(self) -> None:
        """Read the state from the store."""
        return

    def apply(self, events: Sequence[Event]) -> None:
        """Apply events that concern the viewer and may not have been projected when the state was loaded."""
        return

    def join(self, head: int) -> None:
        """Record that the state reflects all events up to the number `head`."""
        return

    async def visible(self, updates: Sequence[C]) -> Sequence[C]:
        """Return the updates that do not show a user who is currently hidden from the viewer."""
        return updates

    def shows(self, update: C) -> bool:
        """Return True if the update is known to be `visible`, False if a look-up must decide. No round trip."""
        return False

    async def before_update(self, update: C | Gap, unprojected: ReadUnprojected) -> None:
        """Prepare the store for the queries that clients send when they get this update."""
        return

    @abstractmethod
    def select(self, events: Sequence[Event]) -> list[Event]:
        """Return the replayed events that may concern the subscriber. Ignores the content of posts."""

    @abstractmethod
    def updates_of(self, events: Sequence[Event]) -> list[C]:
        """Return the updates of events that `select` returned. The caller has removed publications of deleted posts."""

    @abstractmethod
    def register(self, buffer: Buffer[C]) -> None:
        """Start adding the updates of all events after the reader's head to the buffer."""

    @abstractmethod
    def unregister(self, buffer: Buffer[C]) -> None:
        """Stop adding updates to the buffer."""

    def close(self) -> None:
        """Release the resources that `load` acquired, because the subscription has ended."""
