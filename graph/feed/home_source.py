"""Home streams: the source of a subscription to a home timeline, and the index that finds the viewers of an event."""

from array import array
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from typing import ClassVar

from graph.feed.buffer import Buffer
from graph.feed.posting_lists import PostingLists
from graph.feed.source import Source, Unprojected
from graph.feed.updates import AuthorAdded, AuthorRemoved, HomeChange, PostAdded, PostRemoved
from graph.follows import Follows
from graph.log.events import (
    Event,
    Followed,
    PostDeleted,
    PostPublished,
    Reposted,
    Unfollowed,
    Unreposted,
    publication_of,
)
from graph.projections.projections import Projections
from graph.records import published_post


def home_update(event: Event) -> HomeChange | None:
    """Return the update that an event causes in the home streams it concerns, or None if it concerns none.

    Replies that are not listed concern none.
    """
    published = publication_of(event.body)
    if published is not None:
        return PostAdded(event.number, published_post(event.number, published))
    match event.body:
        case PostDeleted(author, post):
            return PostRemoved(event.number, post, author)
        case Unreposted(user, _, repost):
            return PostRemoved(event.number, repost, user)
        case Followed(_, followee):
            return AuthorAdded(event.number, followee)
        case Unfollowed(_, followee):
            return AuthorRemoved(event.number, followee)
        case _:
            return None


class Audience:
    """The live home streams of one viewer, and the authors in that viewer's home timeline."""

    __slots__ = ("authors", "buffers")

    def __init__(self, authors: Iterable[int]) -> None:
        self.authors = array("q", authors)
        self.buffers: list[Buffer[HomeChange]] = []


class HomeIndex:
    """Finds the home streams that an event concerns, in time proportional to their number.

    Memory: 8 bytes and an index entry for each author of each viewer with a live stream.
    """

    def __init__(self) -> None:
        self._audiences: dict[int, Audience] = {}
        self._by_author: PostingLists[int, Audience] = PostingLists()

    def add(self, viewer: int, followed: Iterable[int], buffer: Buffer[HomeChange]) -> None:
        """Add a live stream of a viewer who follows these users as of the reader's head."""
        audience = self._audiences.get(viewer)
        if audience is None:
            audience = self._audiences[viewer] = Audience({viewer, *followed})
            for author in audience.authors:
                self._by_author.add(author, audience)
        audience.buffers.append(buffer)

    def remove(self, viewer: int, buffer: Buffer[HomeChange]) -> None:
        """Remove a stream, if it is in the index."""
        audience = self._audiences.get(viewer)
        if audience is None or buffer not in audience.buffers:
            return
        audience.buffers.remove(buffer)
        if not audience.buffers:
            del self._audiences[viewer]
            for author in audience.authors:
                self._by_author.remove(author, audience)

    def viewers(self) -> list[int]:
        """Return the viewers with a live stream."""
        return list(self._audiences)

    def clear(self) -> None:
        """Remove all streams, because follows may have been missed."""
        self._audiences.clear()
        self._by_author = PostingLists()

    def shows(self, viewer: int, author: int) -> bool:
        """Return True if the author is in the home timeline of a viewer with a live stream."""
        audience = self._audiences.get(viewer)
        return audience is not None and audience in self._by_author[author]

    def has_receivers(self, publication: Event) -> bool:
        """Return True if the publication of a post concerns a stream now."""
        published = publication_of(publication.body)
        return published is not None and published.listed and published.author in self._by_author

    def receivers(self, event: Event) -> list[Buffer[HomeChange]]:
        """Return the buffers of the streams that an event concerns, and apply follows and unfollows to the index."""
        match event.body:
            case (
                PostPublished(author, listed=True)
                | PostDeleted(author, listed=True)
                | Reposted(author)
                | Unreposted(author)
            ):
                return [buffer for audience in self._by_author[author] for buffer in audience.buffers]
            case Followed(follower, followee) if audience := self._audiences.get(follower):
                if followee not in audience.authors:
                    audience.authors.append(followee)
                    self._by_author.add(followee, audience)
                return audience.buffers
            case Unfollowed(follower, followee) if audience := self._audiences.get(follower):
                if followee in audience.authors:
                    audience.authors.remove(followee)
                    self._by_author.remove(followee, audience)
                return audience.buffers
            case _:
                return []


class HomeSource(Source[HomeChange]):
    """The events that concern one viewer's home timeline.

    The replay filters events by the current follows. Clients drop the posts of users who were unfollowed in the
    meantime, and refetch for users who were followed.
    """

    has_state: ClassVar[bool] = True
    viewer: int

    def __init__(self, viewer: int, follows: Follows, projections: Projections, index: HomeIndex) -> None:
        self.viewer = viewer
        self._follows = follows
        self._projections = projections
        self._index = index
        self._followed: set[int] = set()
        self._applied_upto = 0

    async def load(self) -> None:
        """Load the users that the viewer follows. One round trip."""
        self._followed = {*await self._follows.followed_by(self.viewer)}
        self._applied_upto = 0

    def apply(self, events: Sequence[Event]) -> None:
        """Apply the viewer's follows and unfollows.

        Events may be older than the loaded state. They then restore an earlier state temporarily, until the later
        events have been applied too.
        """
        for event in events:
            match event.body:
                case Followed(follower, followee) if follower == self.viewer:
                    self._followed.add(followee)
                case Unfollowed(follower, followee) if follower == self.viewer:
                    self._followed.discard(followee)
                case _:
                    pass

    def join(self, head: int) -> None:
        """Record that follows have been applied up to the event `head`."""
        self._applied_upto = head

    async def before_update(self, update: HomeChange, unprojected: Unprojected) -> None:
        """Before clients refetch because of AuthorAdded, project all events that the stream has sent.

        Events of a process that died after its commit may be unprojected: the refetched page would lack them, and the
        stream would not send them again. One round trip, and about five more if such events concern the viewer, as the
        follow itself usually does.
        """
        if not isinstance(update, AuthorAdded):
            return
        async with aclosing(unprojected()) as parts:
            async for events in parts:
                sent = [
                    event
                    for event in events
                    if event.number <= update.number and (self._concerns(event) or _is_by(update.user, event))
                ]
                await self._projections.catch_up(self.viewer, sent)

    def select(self, events: Sequence[Event]) -> list[Event]:
        """Return the events that concern the viewer's home timeline."""
        selected = []
        for event in events:
            if event.number > self._applied_upto:
                self.apply([event])
            if self._concerns(event):
                selected.append(event)
        return selected

    def updates_of(self, events: Sequence[Event]) -> list[HomeChange]:
        """Return the updates of selected events."""
        return [update for event in events if (update := home_update(event)) is not None]

    def _concerns(self, event: Event) -> bool:
        match event.body:
            case (
                PostPublished(author, listed=True)
                | PostDeleted(author, listed=True)
                | Reposted(author)
                | Unreposted(author)
            ):
                followed = author == self.viewer or author in self._followed
                return followed or self._index.shows(self.viewer, author)
            case Followed(follower) | Unfollowed(follower):
                return follower == self.viewer
            case _:
                return False

    def register(self, buffer: Buffer[HomeChange]) -> None:
        """Add the buffer to the index of home streams."""
        self._index.add(self.viewer, self._followed, buffer)
        self._followed = set()

    def unregister(self, buffer: Buffer[HomeChange]) -> None:
        """Remove the buffer from the index of home streams."""
        self._index.remove(self.viewer, buffer)


def _is_by(author: int, event: Event) -> bool:
    match event.body:
        case PostPublished(by) | PostDeleted(by) | Reposted(by) | Unreposted(by):
            return by == author
        case _:
            return False
