"""Event streams: everything that happens, as far as a filter lets it pass."""

from collections.abc import Sequence

from graph.feed.filters import EventFilter
from graph.feed.matching import FilterIndex
from graph.feed.source import Source
from graph.feed.stream import Stream
from graph.feed.updates import PostDeleted, PostPublished, StreamHappened, UserFollowed, UserUnfollowed
from graph.log.events import Fact, Followed, Unfollowed
from graph.log.events import PostDeleted as DeletedFact
from graph.log.events import PostPublished as PublishedFact
from graph.posts import published_post


def stream_event(fact: Fact) -> StreamHappened | None:
    """Tell what a fact means to those whose filters let it pass; None for a fact of which no stream tells."""
    match fact.event:
        case PublishedFact() as event:
            return PostPublished(fact.number, published_post(fact.number, event))
        case DeletedFact(author, post):
            return PostDeleted(fact.number, post, author)
        case Followed(follower, followee):
            return UserFollowed(fact.number, follower, followee)
        case Unfollowed(follower, followee):
            return UserUnfollowed(fact.number, follower, followee)
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

    def pick(self, facts: Sequence[Fact]) -> list[Fact]:
        """Return the facts that pass by what is known of a post even after its deletion."""
        return [fact for fact in facts if self._filter.may_match(fact)]

    def tell(self, facts: Sequence[Fact]) -> list[StreamHappened]:
        """Return the events of the picked facts that pass, now that deleted posts are no longer among them."""
        passed = [
            fact
            for fact in facts
            if not self.reads_posts or isinstance(fact.event, DeletedFact) or self._filter.matches(fact)
        ]
        return [event for fact in passed if (event := stream_event(fact)) is not None]

    def register(self, stream: Stream[StreamHappened]) -> None:
        """Let the stream hear of everything that passes after the reader's head."""
        self._index.add(self._filter, stream)

    def unregister(self, stream: Stream[StreamHappened]) -> None:
        """Let the stream hear of nothing any more."""
        self._index.remove(self._filter, stream)
