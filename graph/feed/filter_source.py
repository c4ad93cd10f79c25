"""Event streams: the source of a subscription with a filter."""

from collections.abc import Sequence

from graph.feed.buffer import Buffer
from graph.feed.filters import EventFilter
from graph.feed.matching import FilterIndex
from graph.feed.source import Source
from graph.feed.updates import PostDeleted, PostPublished, StreamChange, UserFollowed, UserUnfollowed
from graph.log.events import Event, Followed, Unfollowed, Unreposted, publication_of
from graph.log.events import PostDeleted as PostDeletedEvent
from graph.records import published_post


def stream_update(event: Event) -> StreamChange | None:
    """Return the update that an event causes in event streams, or None if it causes none."""
    published = publication_of(event.body)
    if published is not None:
        return PostPublished(event.number, published_post(event.number, published))
    match event.body:
        case PostDeletedEvent(author, post):
            return PostDeleted(event.number, post, author)
        case Unreposted(user, _, repost):
            return PostDeleted(event.number, repost, user)
        case Followed(follower, followee):
            return UserFollowed(event.number, follower, followee)
        case Unfollowed(follower, followee):
            return UserUnfollowed(event.number, follower, followee)
        case _:
            return None


class FilterSource(Source[StreamChange]):
    """The events that match a filter.

    `viewer` is whose view this is, None if anonymous: posts hidden from this user will be left out.

    Replayed deletions match every keyword and every box. Otherwise a client could guess the words or the location of a
    deleted post and confirm the guess by subscribing.
    """

    def __init__(self, viewer: int | None, filter_: EventFilter, index: FilterIndex[Buffer[StreamChange]]) -> None:
        self.reads_posts = filter_.reads_posts
        self.viewer = viewer
        self._filter = filter_
        self._index = index

    def select(self, events: Sequence[Event]) -> list[Event]:
        """Return the events that match the filter when the content of posts is ignored."""
        return [event for event in events if self._filter.may_match(event)]

    def updates_of(self, events: Sequence[Event]) -> list[StreamChange]:
        """Return the updates of the selected events that match the filter."""
        matching = [
            event
            for event in events
            if not self.reads_posts or isinstance(event.body, PostDeletedEvent) or self._filter.matches(event)
        ]
        return [update for event in matching if (update := stream_update(event)) is not None]

    def register(self, buffer: Buffer[StreamChange]) -> None:
        """Add the buffer to the index of filters."""
        self._index.add(self._filter, buffer)

    def unregister(self, buffer: Buffer[StreamChange]) -> None:
        """Remove the buffer from the index of filters."""
        self._index.remove(self._filter, buffer)
