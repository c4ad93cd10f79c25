"""Streams of threads and of timelines other than home timelines, and the index that finds those an event concerns."""

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, TypeAlias

from graph.feed.buffer import Buffer, C
from graph.feed.home_source import home_updates
from graph.feed.live_views import LiveView, LiveViews
from graph.feed.posting_lists import PostingLists
from graph.feed.source import ReadUnprojected
from graph.feed.updates import AuthorAdded, Gap, HomeChange, TimelineChanged, item_update
from graph.feed.viewed_source import ViewedSource
from graph.log.account_events import UserDeleted
from graph.log.events import (
    Blocked,
    Event,
    EventBody,
    Liked,
    ListChanged,
    ListDeleted,
    PostDeleted,
    PostPublished,
    Reposted,
    Unblocked,
    Unliked,
    Unreposted,
    publication_of,
    repost_ended_by,
)
from graph.log.moderation_events import UserSuspended, UserUnsuspended
from graph.log.pair_events import Muted, Unmuted
from graph.post_lists import Listable, lists_of
from graph.projections.mode import Mode
from graph.projections.projections import Projections

Topic: TypeAlias = tuple[str, int]
"""A list of posts, as the name of its kind and the id of its owner; or the likes of a post, or a post itself."""
LIKES, POST = "likes", "post"
Topics: TypeAlias = Mapping[str, Collection[int]]
"""The ids of the owners of topics, by the name of the kind of topic."""
OF_ALL = UserSuspended | UserUnsuspended | UserDeleted
"""The events that concern all timelines, because any of them may contain reposts of the user's posts."""


def listable(body: EventBody) -> Listable | None:
    """Return the object that determines which lists an event adds a post to or removes one from, or None."""
    match body:
        case PostPublished() | Reposted():
            return publication_of(body)
        case PostDeleted():
            return body
        case Unreposted():
            return repost_ended_by(body)
        case _:
            return None


def topics_of(body: EventBody) -> Iterator[Topic]:
    """Yield the topics that an event changes: lists of posts, the likes of a post, or a post that the event deletes."""
    if (listed := listable(body)) is not None:
        for post_list, owner in lists_of(listed):
            yield post_list.name, owner
    match body:
        case Liked(_, post) | Unliked(_, post):
            yield LIKES, post
        case PostDeleted(_, post):
            yield POST, post
        case _:
            pass


def viewers_of(body: EventBody) -> tuple[int, ...]:
    """Return the viewers whose streams a block, a mute or a change of a list concerns; empty for other events."""
    match body:
        case Blocked(one, other) | Unblocked(one, other):
            return one, other
        case Muted(viewer, _) | Unmuted(viewer, _) | ListChanged(viewer, _) | ListDeleted(viewer, _):
            return (viewer,)
        case _:
            return ()


def post_or_author_update(event: Event, viewer: int | None) -> HomeChange | None:
    """Return the update of an event that creates or ends a post or shows or hides an author; None for other events."""
    return item_update(event) or next(
        (update for user, update in home_updates(event) if user is None or user == viewer), None
    )


class TopicSource(ViewedSource[C]):
    """The events that concern certain topics, and those that change what the viewer sees of them."""

    prepares = (AuthorAdded, TimelineChanged, Gap)

    def __init__(self, view: LiveView, views: LiveViews, projections: Projections, index: "TopicIndex") -> None:
        super().__init__(view, views)
        self._projections = projections
        self._index = index

    @property
    @abstractmethod
    def authors(self) -> Collection[int]:
        """The users whose posts the client refetches after an update."""

    @property
    @abstractmethod
    def topics(self) -> Topics:
        """The topics whose events concern the stream."""

    @abstractmethod
    def update_of(self, event: Event) -> C | None:
        """Return the update caused by an event that concerns the stream."""

    def group(self, event: Event) -> int | None:
        """Return the id of the object, besides the viewer, that determines the update of an event, or None."""
        return None

    async def before_update(self, update: C | Gap, unprojected: ReadUnprojected) -> None:
        """Project the events that the client must see when it refetches its page: see `HomeSource.before_update`."""
        if isinstance(update, AuthorAdded | TimelineChanged | Gap):
            added = [update.user] if isinstance(update, AuthorAdded) else []
            async with aclosing(unprojected({*self.authors, *added})) as parts:
                async for sent in parts:
                    await self._projections.project(sent, Mode.CATCH_UP)

    def updates_of(self, events: Sequence[Event]) -> list[C]:
        """Return the updates of selected events."""
        return [update for event in events if (update := self.update_of(event)) is not None]

    def concerns(self, event: Event) -> bool:
        """Return True if an event concerns a topic of the stream or what the viewer sees of it."""
        body = event.body
        if isinstance(body, OF_ALL):
            return True
        if isinstance(body, Blocked | Unblocked):
            return self.viewer in viewers_of(body)
        topics = self.topics
        return any(owner in topics.get(name, ()) for name, owner in topics_of(body))

    def register(self, buffer: Buffer[C]) -> None:
        """Add the buffer to the index."""
        self._index.add(self, buffer)
        super().register(buffer)

    def unregister(self, buffer: Buffer[C]) -> None:
        """Remove the buffer from the index."""
        self._index.remove(self)
        super().unregister(buffer)


class TopicIndex:
    """Finds the live streams of topics that an event concerns, in time proportional to their number."""

    def __init__(self) -> None:
        self._buffers: dict[TopicSource[Any], Buffer[Any]] = {}
        self._by_topic: dict[str, PostingLists[int, TopicSource[Any]]] = {}
        self._by_viewer: PostingLists[int, TopicSource[Any]] = PostingLists()
        self._topics: dict[TopicSource[Any], Topics] = {}

    def add(self, source: TopicSource[Any], buffer: Buffer[Any]) -> None:
        """Add a live stream. The state of its source must be up to date with the reader's head."""
        self._buffers[source] = buffer
        if source.viewer is not None:
            self._by_viewer.add(source.viewer, source)
        self._enter(source)

    def remove(self, source: TopicSource[Any]) -> None:
        """Remove a stream, if it is in the index."""
        if self._buffers.pop(source, None) is None:
            return
        if source.viewer is not None:
            self._by_viewer.remove(source.viewer, source)
        self._leave(source)

    def _enter(self, source: TopicSource[Any]) -> None:
        topics = self._topics[source] = source.topics
        for name, owners in topics.items():
            self._by_topic.setdefault(name, PostingLists()).add_all(owners, source)

    def _leave(self, source: TopicSource[Any]) -> None:
        for name, owners in self._topics.pop(source).items():
            self._by_topic[name].remove_all(owners, source)

    def _at(self, body: EventBody) -> Iterator[TopicSource[Any]]:
        for name, owner in topics_of(body):
            if (found := self._by_topic.get(name)) is not None:
                yield from found[owner]

    def has_receivers(self, publication: Event) -> bool:
        """Return True if the publication of a post concerns at least one live stream."""
        return bool(self._buffers) and next(self._at(publication.body), None) is not None

    def deliveries(self, event: Event) -> list[tuple[Any, list[Buffer[Any]]]]:
        """Return the updates of an event, each with the buffers that get it.

        If a list has changed, apply the change to its streams. The blocks and mutes of viewers have already been
        applied (see `LiveViews`).
        """
        if not self._buffers:
            return []
        if isinstance(event.body, OF_ALL):
            return self._updates(event, list(self._buffers))
        viewers = viewers_of(event.body)
        if not viewers:
            return self._updates(event, list(dict.fromkeys(self._at(event.body))))
        found = []
        for viewer in dict.fromkeys(viewers):
            sources = [source for source in self._by_viewer[viewer] if source.concerns(event)]
            if isinstance(event.body, ListChanged | ListDeleted):
                for source in sources:
                    source.apply([event])
                    self._leave(source)
                    self._enter(source)
            found += self._updates(event, sources)
        return found

    def _updates(self, event: Event, sources: Sequence[TopicSource[Any]]) -> list[tuple[Any, list[Buffer[Any]]]]:
        """Return the updates of an event for these sources, with their buffers.

        Sources with equal updates share one update, so that equal operations also share one execution.
        """
        depends_on_viewer = bool(viewers_of(event.body))
        groups: dict[tuple[int | None, int | None], list[TopicSource[Any]]] = {}
        for source in sources:
            groups.setdefault((source.group(event), source.viewer if depends_on_viewer else None), []).append(source)
        updates = [(some[0].update_of(event), some) for some in groups.values()]
        return [(each, [self._buffers[source] for source in some]) for each, some in updates if each is not None]
