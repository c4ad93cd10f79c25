"""Update streams: everything that happens, as far as a filter lets it pass."""

from collections.abc import Sequence

from graph.feed.filters import EventFilter
from graph.feed.matching import FilterIndex
from graph.feed.source import Source
from graph.feed.stream import Stream
from graph.feed.updates import PostDeleted, PostPublished, StreamHappened, UserFollowed, UserUnfollowed
from graph.log.events import Event, Followed, Unfollowed
from graph.log.events import PostDeleted as LoggedDeletion
from graph.log.events import PostPublished as LoggedPost
from graph.records import published_post


def stream_update(event: Event) -> StreamHappened | None:
    """Tell what an event means to those whose filters let it pass; None for an event of which no stream tells."""
    match event.body:
        case LoggedPost() as update:
            return PostPublished(event.number, published_post(event.number, update))
        case LoggedDeletion(author, post):
            return PostDeleted(event.number, post, author)
        case Followed(follower, followee):
            return UserFollowed(event.number, follower, followee)
        case Unfollowed(follower, followee):
            return UserUnfollowed(event.number, follower, followee)
        case _:
            return None


class FilterSource(Source[StreamHappened]):
    """What passes one filter: the past as a stream joins, and its place in the index after that.

    Deletions of the past match every keyword and every box. The filter may be a guess at the words or the place of a
    post that was deleted before the guess was made, and must not be answered.
    """

    def __init__(self, filter_: EventFilter, index: FilterIndex[Stream[StreamHappened]]) -> None:
        self.reads_posts = filter_.reads_posts
        self._filter = filter_
        self._index = index

    def pick(self, events: Sequence[Event]) -> list[Event]:
        """Return the events that pass by what is known of a post even after its deletion."""
        return [event for event in events if self._filter.may_match(event)]

    def tell(self, events: Sequence[Event]) -> list[StreamHappened]:
        """Return the updates of the picked events that pass, now that deleted posts are no longer among them."""
        passed = [
            event
            for event in events
            if not self.reads_posts or isinstance(event.body, LoggedDeletion) or self._filter.matches(event)
        ]
        return [update for event in passed if (update := stream_update(event)) is not None]

    def register(self, stream: Stream[StreamHappened]) -> None:
        """Let the stream hear of everything that passes after the reader's head."""
        self._index.add(self._filter, stream)

    def unregister(self, stream: Stream[StreamHappened]) -> None:
        """Let the stream hear of nothing any more."""
        self._index.remove(self._filter, stream)
