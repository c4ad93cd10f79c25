"""Home streams: the source of a subscription to a home timeline, and the index of the viewers of live streams."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace

from graph.feed.buffer import Buffer
from graph.feed.home_state import CompactUsers, HomeState
from graph.feed.live_views import LiveView, LiveViews
from graph.feed.posting_lists import PostingLists
from graph.feed.source import ReadUnprojected
from graph.feed.updates import (
    AuthorAdded,
    AuthorHidden,
    AuthorRemoved,
    Gap,
    HomeChange,
    item_update,
)
from graph.feed.viewed_source import ViewedSource
from graph.log.account_events import UserDeleted
from graph.log.events import (
    Blocked,
    Event,
    Followed,
    Unblocked,
    Unfollowed,
    author_of,
    listed_author_of,
    publication_of,
)
from graph.log.moderation_events import UserSuspended, UserUnsuspended
from graph.log.pair_events import Muted, Unmuted
from graph.people.follows import Follows
from graph.projections.projections import Projections


def home_updates(event: Event) -> list[tuple[int | None, HomeChange]]:
    """Return the updates that an event causes in home streams, each with the viewer whom it concerns.

    The viewer is None if the update concerns every viewer whose home timeline includes the author. It is also None for
    a suspension, the end of a suspension and the deletion of an account. These concern all viewers, because any viewer
    may have reposts of the user's posts. Replies that are not listed concern no viewer.
    """
    number = event.number
    if listed_author_of(event.body) is not None:
        item = item_update(event)
        return [] if item is None else [(None, item)]
    match event.body:
        case Followed(viewer, user) | Unmuted(viewer, user):
            return [(viewer, AuthorAdded(number, user))]
        case Unfollowed(viewer, user):
            return [(viewer, AuthorRemoved(number, user))]
        case Muted(viewer, user):
            return [(viewer, AuthorHidden(number, user))]
        case Blocked(blocker, blocked):
            return [(blocker, AuthorHidden(number, blocked)), (blocked, AuthorHidden(number, blocker))]
        case Unblocked(blocker, blocked):
            return [(blocker, AuthorAdded(number, blocked)), (blocked, AuthorAdded(number, blocker))]
        case UserSuspended(user) | UserDeleted(user):
            return [(None, AuthorHidden(number, user))]
        case UserUnsuspended(user):
            return [(None, AuthorAdded(number, user))]
        case _:
            return []


class HomeStreams:
    """The live home streams of one viewer, and the state of that viewer's home timeline."""

    __slots__ = ("buffers", "state")

    def __init__(self, state: HomeState) -> None:
        self.state = state
        self.buffers: list[Buffer[HomeChange]] = []


class HomeIndex:
    """Finds the home streams that an event concerns, in time proportional to their number.

    Memory: 8 bytes and an index entry for each author in the home timeline of each viewer with a live stream.
    """

    def __init__(self) -> None:
        self._by_viewer: dict[int, HomeStreams] = {}
        self._by_author: PostingLists[int, HomeStreams] = PostingLists()

    def add(self, viewer: int, state: HomeState, buffer: Buffer[HomeChange]) -> None:
        """Add a live stream of a viewer.

        `state` is the state of the viewer's home timeline as of the reader's head.
        """
        streams = self._by_viewer.get(viewer)
        if streams is None:
            shown = replace(state, authors=CompactUsers({viewer, *state.authors}))
            streams = self._by_viewer[viewer] = HomeStreams(shown)
            for author in shown.authors:
                self._by_author.add(author, streams)
        streams.buffers.append(buffer)

    def remove(self, viewer: int, buffer: Buffer[HomeChange]) -> None:
        """Remove a stream, if it is in the index."""
        streams = self._by_viewer.get(viewer)
        if streams is None or buffer not in streams.buffers:
            return
        streams.buffers.remove(buffer)
        if not streams.buffers:
            del self._by_viewer[viewer]
            for author in streams.state.authors:
                self._by_author.remove(author, streams)

    def viewers(self) -> list[int]:
        """Return the viewers with a live stream."""
        return list(self._by_viewer)

    def clear(self) -> None:
        """Remove all streams, because follows may have been missed."""
        self._by_viewer.clear()
        self._by_author = PostingLists()

    def shows(self, viewer: int, author: int) -> bool:
        """Return True if the viewer has a live stream and the author is in the viewer's home timeline."""
        streams = self._by_viewer.get(viewer)
        return streams is not None and streams in self._by_author[author]

    def authors_of(self, viewer: int) -> Iterable[int]:
        """Return the authors in the home timeline of a viewer; empty if the viewer has no live stream."""
        streams = self._by_viewer.get(viewer)
        return () if streams is None else streams.state.authors

    def has_receivers(self, publication: Event) -> bool:
        """Return True if the publication of a post concerns at least one live stream."""
        published = publication_of(publication.body)
        return published is not None and published.listed and published.author in self._by_author

    def deliveries(self, event: Event) -> list[tuple[HomeChange, list[Buffer[HomeChange]]]]:
        """Return the updates of an event, each with the buffers that get it, and apply the event to the index."""
        author = author_of(event.body)
        if author is not None:
            updates = home_updates(event)
            groups = self._by_author[author] if updates else ()
            buffers = [buffer for streams in groups for buffer in streams.buffers]
            return [(update, buffers) for _, update in updates] if buffers else []
        if isinstance(event.body, UserSuspended | UserUnsuspended | UserDeleted):
            buffers = [buffer for streams in self._by_viewer.values() for buffer in streams.buffers]
            return [(update, buffers) for _, update in home_updates(event)] if buffers else []
        found = []
        for viewer, update in home_updates(event):
            if viewer is not None and (streams := self._by_viewer.get(viewer)):
                self._apply(viewer, streams, event)
                found.append((update, streams.buffers))
        return found

    def _apply(self, viewer: int, streams: HomeStreams, event: Event) -> None:
        shown, hidden = streams.state.apply(viewer, event)
        for author in shown:
            self._by_author.add(author, streams)
        for author in hidden:
            self._by_author.remove(author, streams)


class HomeSource(ViewedSource[HomeChange]):
    """The events that concern one viewer's home timeline.

    The replay filters events by the current follows. Clients drop the posts of users who were unfollowed in the
    meantime, and refetch for users who were followed.
    """

    prepares = (AuthorAdded, Gap)
    viewer: int

    def __init__(
        self, view: LiveView, views: LiveViews, follows: Follows, projections: Projections, index: HomeIndex
    ) -> None:
        super().__init__(view, views)
        self._follows = follows
        self._projections = projections
        self._index = index
        self._state = HomeState(set())

    async def load(self) -> None:
        """Load the users that the viewer follows, mutes and blocks, and those who block the viewer. One round trip."""
        followed, muted, _ = await asyncio.gather(
            self._follows.followed_by(self.viewer), self._follows.muted_by(self.viewer), super().load()
        )
        self._state = HomeState.of(followed, muted, self._view.exclusions.blocking, self._view.exclusions.blockers)

    def apply(self, events: Sequence[Event]) -> None:
        """Apply the viewer's follows, mutes and blocks, and blocks against the viewer: see `ViewedSource.apply`."""
        super().apply(events)
        for event in events:
            self._state.apply(self.viewer, event)

    async def visible(self, updates: Sequence[HomeChange]) -> Sequence[HomeChange]:
        """Return the updates, except posts by hidden users and plain reposts of posts by hidden or muted users."""
        return await self._view.visible_at_home(updates)

    async def before_update(self, update: HomeChange | Gap, unprojected: ReadUnprojected) -> None:
        """Project all events that the stream has sent, because AuthorAdded and Gap make clients refetch the page.

        Events may be unprojected because a process died after it had committed them. They would be missing from the
        refetched page, and the stream would not send them again. One round trip, and about six more if such events
        concern the viewer, as the follow itself usually does.
        """
        if not isinstance(update, AuthorAdded | Gap):
            return
        authors = {self.viewer, *self._state.authors, *self._index.authors_of(self.viewer)}
        if isinstance(update, AuthorAdded):
            authors.add(update.user)
        async with aclosing(unprojected(authors)) as parts:
            async for sent in parts:
                await self._projections.catch_up(self.viewer, sent)

    def updates_of(self, events: Sequence[Event]) -> list[HomeChange]:
        """Return the updates of selected events."""
        return [update for event in events for viewer, update in home_updates(event) if viewer in (None, self.viewer)]

    def concerns(self, event: Event) -> bool:
        """Return True if an event concerns the viewer's home timeline."""
        author = listed_author_of(event.body)
        if author is None:
            return any(viewer in (None, self.viewer) for viewer, _ in home_updates(event))
        return author == self.viewer or author in self._state.authors or self._index.shows(self.viewer, author)

    def register(self, buffer: Buffer[HomeChange]) -> None:
        """Add the buffer to the index of home streams."""
        self._index.add(self.viewer, self._state, buffer)
        self._state = HomeState(set())
        super().register(buffer)

    def unregister(self, buffer: Buffer[HomeChange]) -> None:
        """Remove the buffer from the index of home streams."""
        self._index.remove(self.viewer, buffer)
        super().unregister(buffer)
