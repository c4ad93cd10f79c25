"""The part of a source that is common to all streams whose viewer may not see every user."""

from abc import abstractmethod
from collections.abc import Callable, Sequence

from graph.feed.buffer import Buffer, C
from graph.feed.live_views import LiveView, LiveViews, nothing
from graph.feed.source import Source
from graph.log.events import Event


class ViewedSource(Source[C]):
    """Keeps the view of a subscription up to date: with the log during the replay, then with the reader's events."""

    has_state = True

    def __init__(self, view: LiveView, views: LiveViews) -> None:
        self.viewer = view.viewer
        self._view = view
        self._views = views
        self._remove_view: Callable[[], None] = nothing
        self._applied_up_to = 0

    @abstractmethod
    def concerns(self, event: Event) -> bool:
        """Return True if a replayed event may concern the subscriber. Ignores the content of posts."""

    async def load(self) -> None:
        """Read the suspensions and the viewer's blocks and mutes. One round trip."""
        await self._view.load()
        self._applied_up_to = 0

    def apply(self, events: Sequence[Event]) -> None:
        """Apply the viewer's blocks and mutes, and blocks against the viewer.

        Events that are older than the loaded state restore an earlier state temporarily, until the later events have
        been applied, too.
        """
        self._view.apply(events)

    def join(self, head: int) -> None:
        """Record that the state reflects all events up to the number `head`."""
        self._applied_up_to = head

    def shows(self, update: C) -> bool:
        """Return True if the blocks and mutes in memory are complete and the update shows no hidden or muted user."""
        return self._view.sees(update)

    def select(self, events: Sequence[Event]) -> list[Event]:
        """Apply events that the state lacks, and return those that may concern the subscriber."""
        selected = []
        for event in events:
            if event.number > self._applied_up_to:
                self.apply([event])
            if self.concerns(event):
                selected.append(event)
        return selected

    def register(self, buffer: Buffer[C]) -> None:
        """Keep the view up to date with the reader's events."""
        self._remove_view = self._views.add(self._view)

    def unregister(self, buffer: Buffer[C]) -> None:
        """Stop keeping the view up to date."""
        self._remove_view()
        self._remove_view = nothing
