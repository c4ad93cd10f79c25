"""Streams of timelines that are not home timelines: of a user, of a user's replies, and of a list of users."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import TypeAlias

from graph.feed.buffer import Buffer
from graph.feed.home_source import home_updates
from graph.feed.live_views import LiveView, LiveViews
from graph.feed.posting_lists import PostingLists
from graph.feed.source import ReadUnprojected
from graph.feed.updates import AuthorAdded, Gap, ItemAdded, TimelineChange, TimelineChanged, item_update
from graph.feed.viewed_source import ViewedSource
from graph.log.account_events import UserDeleted
from graph.log.events import (
    Blocked,
    Event,
    EventBody,
    Liked,
    ListChanged,
    ListCreated,
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
from graph.people.lists import Lists
from graph.post_lists import TIMELINE, Listable, PostList, lists_of
from graph.projections.mode import Mode
from graph.projections.projections import Projections

Place: TypeAlias = tuple[str, int]
"""A list of posts, as the name of its kind and its owner; or the likes of a post, or the post itself."""
LIKES, POST = "likes", "post"
Places: TypeAlias = Mapping[str, Collection[int]]
"""The owners of places by the name of the kind."""
OF_ALL = UserSuspended | UserUnsuspended | UserDeleted
"""The events that concern all timelines, because any of them may contain reposts of the user's posts."""


def listable(body: EventBody) -> Listable | None:
    """Return what determines the lists that an event adds a post to or removes one from; None for other events."""
    match body:
        case PostPublished() | Reposted():
            return publication_of(body)
        case PostDeleted():
            return body
        case Unreposted():
            return repost_ended_by(body)
        case _:
            return None


def places_of(body: EventBody) -> Iterator[Place]:
    """Yield the lists that an event adds a post to or removes one from, and the post that it likes or deletes."""
    if (listed := listable(body)) is not None:
        for of, owner in lists_of(listed):
            yield of.name, owner
    match body:
        case Liked(_, post) | Unliked(_, post):
            yield LIKES, post
        case PostDeleted(_, post):
            yield POST, post
        case _:
            pass


def viewers_of(body: EventBody) -> tuple[int, ...]:
    """Return the viewers whose streams may send an update of an event that creates or removes no post."""
    match body:
        case Blocked(one, other) | Unblocked(one, other):
            return one, other
        case Muted(viewer, _) | Unmuted(viewer, _) | ListChanged(viewer, _) | ListDeleted(viewer, _):
            return (viewer,)
        case _:
            return ()


class TimelineSource(ViewedSource[TimelineChange]):
    """The events that concern one list of posts of a user: the listed posts, or the replies.

    If the viewer mutes a user, nothing changes: users' own timelines show the posts of muted users.
    """

    prepares = (AuthorAdded, TimelineChanged, Gap)

    def __init__(
        self,
        view: LiveView,
        views: LiveViews,
        of: PostList,
        owner: int,
        projections: Projections,
        index: "TimelineIndex",
    ) -> None:
        super().__init__(view, views)
        self._of = of
        self._owner = owner
        self._projections = projections
        self._index = index

    @property
    def authors(self) -> Collection[int]:
        """The users whose posts the timeline contains."""
        return (self._owner,)

    @property
    def places(self) -> Places:
        """The places whose events concern the timeline: the lists of its authors' posts."""
        return {self._of.name: self.authors}

    async def visible(self, updates: Sequence[TimelineChange]) -> Sequence[TimelineChange]:
        """Return the updates that show no user who is hidden from the viewer now."""
        return await self._view.visible_in_timeline(updates)

    async def before_update(self, update: TimelineChange | Gap, unprojected: ReadUnprojected) -> None:
        """Project the events that the page must show which the client fetches again: see `HomeSource.before_update`."""
        if isinstance(update, AuthorAdded | TimelineChanged | Gap):
            added = [update.user] if isinstance(update, AuthorAdded) else []
            async with aclosing(unprojected({*self.authors, *added})) as parts:
                async for sent in parts:
                    await self._projections.project(sent, Mode.CATCH_UP)

    def updates_of(self, events: Sequence[Event]) -> list[TimelineChange]:
        """Return the updates of selected events."""
        return [update for event in events if (update := self.update_of(event)) is not None]

    def group(self, event: Event) -> int | None:
        """Return what the update of an event depends on, besides the viewer: None for nothing else."""
        return None

    def update_of(self, event: Event) -> TimelineChange | None:
        """Return the update that an event which concerns the timeline causes."""
        return item_update(event) or next(
            (update for user, update in home_updates(event) if user is None or user == self.viewer), None
        )

    def concerns(self, event: Event) -> bool:
        """Return whether an event concerns the timeline or what the viewer sees in it."""
        body = event.body
        if isinstance(body, OF_ALL):
            return True
        if isinstance(body, Blocked | Unblocked):
            return self.viewer in viewers_of(body)
        places = self.places
        return any(owner in places.get(name, ()) for name, owner in places_of(body))

    def register(self, buffer: Buffer[TimelineChange]) -> None:
        """Add the buffer to the index of timelines."""
        self._index.add(self, buffer)
        super().register(buffer)

    def unregister(self, buffer: Buffer[TimelineChange]) -> None:
        """Remove the buffer from the index of timelines."""
        self._index.remove(self)
        super().unregister(buffer)


class ListTimelineSource(TimelineSource):
    """The events that concern the timeline of one of the viewer's lists, without the posts of muted users.

    The replay selects events by the current members. Its `TimelineChanged` events make the client refetch the posts of
    users who were added or removed in the meantime.
    """

    viewer: int

    def __init__(
        self,
        view: LiveView,
        views: LiveViews,
        lists: Lists,
        list_id: int,
        projections: Projections,
        index: "TimelineIndex",
    ) -> None:
        super().__init__(view, views, TIMELINE, list_id, projections, index)
        self._lists = lists
        self._members: frozenset[int] = frozenset()

    @property
    def authors(self) -> Collection[int]:
        """The members of the list."""
        return self._members

    async def load(self) -> None:
        """Read the members, the suspensions, and the viewer's blocks and mutes. One round trip."""
        members, _ = await asyncio.gather(self._lists.member_ids(self.viewer, self._owner), super().load())
        self._members = frozenset(members)

    def apply(self, events: Sequence[Event]) -> None:
        """Apply blocks, mutes and changes of the list."""
        super().apply(events)
        for event in events:
            match event.body:
                case ListCreated(members=members) if event.number == self._owner:
                    self._members = frozenset(members)
                case ListChanged(_, list_id) as body if list_id == self._owner:
                    self._members = self._members.difference(body.removed).union(body.added)
                case ListDeleted(_, list_id) if list_id == self._owner:
                    self._members = frozenset()
                case _:
                    pass

    async def visible(self, updates: Sequence[TimelineChange]) -> Sequence[TimelineChange]:
        """Return the updates that show no hidden user, without posts of muted users and reposts of such posts."""
        visible = await self._view.visible_at_home(updates)
        silenced = await self._view.silenced({each.post.author for each in visible if isinstance(each, ItemAdded)})
        return [each for each in visible if not isinstance(each, ItemAdded) or each.post.author not in silenced]

    def concerns(self, event: Event) -> bool:
        """Return whether an event concerns the list, a member, or what the viewer sees."""
        match event.body:
            case Muted(viewer, _) | Unmuted(viewer, _):
                return viewer == self.viewer
            case ListChanged(_, list_id) as changed:
                return list_id == self._owner and bool(changed.added or changed.removed)
            case ListDeleted(_, list_id):
                return list_id == self._owner
            case _:
                return super().concerns(event)

    def update_of(self, event: Event) -> TimelineChange | None:
        """Return the update that an event which concerns the list causes."""
        if isinstance(event.body, ListChanged | ListDeleted):
            return TimelineChanged(event.number)
        return super().update_of(event)


class TimelineIndex:
    """Finds the live streams of timelines that an event concerns, in time proportional to their number."""

    def __init__(self) -> None:
        self._buffers: dict[TimelineSource, Buffer[TimelineChange]] = {}
        self._by_place: dict[str, PostingLists[int, TimelineSource]] = {}
        self._by_viewer: PostingLists[int, TimelineSource] = PostingLists()
        self._places: dict[TimelineSource, Places] = {}

    def add(self, source: TimelineSource, buffer: Buffer[TimelineChange]) -> None:
        """Add a live stream. The state of its source is that of the reader's head."""
        self._buffers[source] = buffer
        if source.viewer is not None:
            self._by_viewer.add(source.viewer, source)
        self._enter(source)

    def remove(self, source: TimelineSource) -> None:
        """Remove a stream, if it is in the index."""
        if self._buffers.pop(source, None) is None:
            return
        if source.viewer is not None:
            self._by_viewer.remove(source.viewer, source)
        self._leave(source)

    def _enter(self, source: TimelineSource) -> None:
        places = self._places[source] = source.places
        for name, owners in places.items():
            self._by_place.setdefault(name, PostingLists()).add_all(owners, source)

    def _leave(self, source: TimelineSource) -> None:
        for name, owners in self._places.pop(source).items():
            self._by_place[name].remove_all(owners, source)

    def _at(self, body: EventBody) -> Iterator[TimelineSource]:
        for name, owner in places_of(body):
            if (found := self._by_place.get(name)) is not None:
                yield from found[owner]

    def has_receivers(self, publication: Event) -> bool:
        """Return True if the publication of a post concerns at least one live stream."""
        return bool(self._buffers) and next(self._at(publication.body), None) is not None

    def deliveries(self, event: Event) -> list[tuple[TimelineChange, list[Buffer[TimelineChange]]]]:
        """Return the updates of an event, each with the buffers that get it, and apply the event to the sources."""
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
            for source in sources:
                source.apply([event])
                if isinstance(event.body, ListChanged | ListDeleted):
                    self._leave(source)
                    self._enter(source)
            found += self._updates(event, sources)
        return found

    def _updates(
        self, event: Event, sources: Sequence[TimelineSource]
    ) -> list[tuple[TimelineChange, list[Buffer[TimelineChange]]]]:
        """Return the updates of an event for these sources, with their buffers.

        Sources with equal updates share one. So the executions of equal operations are shared, too.
        """
        depends_on_viewer = bool(viewers_of(event.body))
        groups: dict[tuple[int | None, int | None], list[TimelineSource]] = {}
        for source in sources:
            groups.setdefault((source.group(event), source.viewer if depends_on_viewer else None), []).append(source)
        updates = [(some[0].update_of(event), some) for some in groups.values()]
        return [(each, [self._buffers[source] for source in some]) for each, some in updates if each is not None]
