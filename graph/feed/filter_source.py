"""Event streams: the source of a subscription with a filter."""

from collections.abc import Callable, Sequence

from graph.feed.buffer import Buffer
from graph.feed.filters import EventFilter
from graph.feed.live_views import LiveView, LiveViews, nothing
from graph.feed.matching import FilterIndex
from graph.feed.source import Source
from graph.feed.updates import StreamChange, UserFollowed, UserUnfollowed, item_update
from graph.log.events import Event, Followed, PostDeleted, Unfollowed


def stream_update(event: Event) -> StreamChange | None:
    """Return the update that an event causes in event streams, or None if it causes none."""
    match event.body:
        case Followed(follower, followee):
            return UserFollowed(event.number, follower, followee)
        case Unfollowed(follower, followee):
            return UserUnfollowed(event.number, follower, followee)
        case _:
            return item_update(event)


class FilterSource(Source[StreamChange]):
    """The events that match a filter.

    `view` removes posts and follows of users who are hidden from the viewer now, plain reposts of their posts, and
    deletions of posts whose author blocks the viewer or is blocked by the viewer.

    Replayed deletions match every keyword and every box. Otherwise a client could guess the words or the location of a
    deleted post and confirm the guess by subscribing.
    """

    has_state = True

    def __init__(
        self, view: LiveView, views: LiveViews, filter_: EventFilter, index: FilterIndex[Buffer[StreamChange]]
    ) -> None:
        self.reads_posts = filter_.reads_posts
        self.viewer = view.viewer
        self._view = view
        self._views = views
        self._filter = filter_
        self._index = index
        self._remove_view: Callable[[], None] = nothing
        self._applied_upto = 0
        self._is_prepared = False

    async def load(self) -> None:
        """Read the suspensions and the viewer's blocks. One round trip. The first call also prepares the filter."""
        if not self._is_prepared:
            await self._index.prepare(self._filter)
            self._is_prepared = True
        await self._view.load()
        self._applied_upto = 0

    def apply(self, events: Sequence[Event]) -> None:
        """Apply blocks that may not have been projected when the state was loaded."""
        self._view.apply(events)

    def join(self, head: int) -> None:
        """Record that blocks have been applied up to the event `head`."""
        self._applied_upto = head

    async def visible(self, updates: Sequence[StreamChange]) -> Sequence[StreamChange]:
        """Return the updates that show no user who is hidden from the viewer now."""
        return await self._view.visible_in_events(updates)

    def shows(self, update: StreamChange) -> bool:
        """Return True if the blocks and mutes in memory are complete and the update shows no hidden or muted user."""
        return self._view.sees(update)

    def select(self, events: Sequence[Event]) -> list[Event]:
        """Return the events that match the filter when the content of posts is ignored."""
        self._view.apply(event for event in events if event.number > self._applied_upto)
        return [event for event in events if self._filter.may_match(event)]

    def updates_of(self, events: Sequence[Event]) -> list[StreamChange]:
        """Return the updates of the selected events that match the filter."""
        matching = [
            event
            for event in events
            if not self.reads_posts or isinstance(event.body, PostDeleted) or self._filter.matches(event)
        ]
        return [update for event in matching if (update := stream_update(event)) is not None]

    def register(self, buffer: Buffer[StreamChange]) -> None:
        """Add the buffer to the index of filters."""
        self._index.add(self._filter, buffer)
        self._remove_view = self._views.add(self._view)

    def unregister(self, buffer: Buffer[StreamChange]) -> None:
        """Remove the buffer from the index of filters."""
        self._index.remove(self._filter, buffer)
        self._remove_view()
        self._remove_view = nothing

    def close(self) -> None:
        """Release the filter. The index drops it unless other subscriptions use it."""
        if self._is_prepared:
            self._index.release(self._filter)
            self._is_prepared = False
