"""Event streams: the source of a subscription with a filter."""

from collections.abc import Sequence

from graph.feed.buffer import Buffer
from graph.feed.filters import EventFilter
from graph.feed.live_views import LiveView, LiveViews
from graph.feed.matching import FilterIndex
from graph.feed.updates import FilteredChange, UserFollowed, UserUnfollowed, item_update
from graph.feed.viewed_source import ViewedSource
from graph.log.events import Event, Followed, PostDeleted, Unfollowed


def filtered_update(event: Event) -> FilteredChange | None:
    """Return the update that an event causes in event streams, or None if it causes none."""
    match event.body:
        case Followed(follower, followee):
            return UserFollowed(event.number, follower, followee)
        case Unfollowed(follower, followee):
            return UserUnfollowed(event.number, follower, followee)
        case _:
            return item_update(event)


class FilterSource(ViewedSource[FilteredChange]):
    """The events that match a filter.

    `view` removes posts and follows of users who are hidden from the viewer now, plain reposts of their posts, and
    deletions of posts whose author blocks the viewer or is blocked by the viewer.

    Replayed deletions match every keyword and every box. Otherwise a client could guess the words or the location of a
    deleted post and confirm the guess by subscribing.
    """

    def __init__(
        self, view: LiveView, views: LiveViews, filter_: EventFilter, index: FilterIndex[Buffer[FilteredChange]]
    ) -> None:
        super().__init__(view, views)
        self.reads_posts = filter_.reads_posts
        self._filter = filter_
        self._index = index
        self._is_held = False

    async def load(self) -> None:
        """Read the suspensions and the viewer's blocks. One round trip. The first call also holds the filter."""
        if not self._is_held:
            await self._index.hold(self._filter)
            self._is_held = True
        await super().load()

    async def visible(self, updates: Sequence[FilteredChange]) -> Sequence[FilteredChange]:
        """Return the updates that do not show a user who is currently hidden from the viewer."""
        return await self._view.visible_in_events(updates)

    def concerns(self, event: Event) -> bool:
        """Return True if an event matches the filter, ignoring the content of posts."""
        return self._filter.may_match(event)

    def updates_of(self, events: Sequence[Event]) -> list[FilteredChange]:
        """Return the updates of the selected events that match the filter."""
        matching = [
            event
            for event in events
            if not self.reads_posts or isinstance(event.body, PostDeleted) or self._filter.matches(event)
        ]
        return [update for event in matching if (update := filtered_update(event)) is not None]

    def register(self, buffer: Buffer[FilteredChange]) -> None:
        """Add the buffer to the index of filters."""
        self._index.add(self._filter, buffer)
        super().register(buffer)

    def unregister(self, buffer: Buffer[FilteredChange]) -> None:
        """Remove the buffer from the index of filters."""
        self._index.remove(self._filter, buffer)
        super().unregister(buffer)

    def close(self) -> None:
        """Release the filter. The index drops it unless other subscriptions use it."""
        if self._is_held:
            self._index.release(self._filter)
            self._is_held = False
