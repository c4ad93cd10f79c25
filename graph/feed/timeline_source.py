"""Streams of timelines other than home timelines: of a user, of a user's replies, and of a list of users."""

import asyncio
from collections.abc import Collection, Sequence

from graph.feed.live_views import LiveView, LiveViews
from graph.feed.topic_source import TopicIndex, Topics, TopicSource, post_or_author_update
from graph.feed.updates import ItemAdded, TimelineChange, TimelineChanged
from graph.log.events import Event, ListChanged, ListCreated, ListDeleted
from graph.log.pair_events import Muted, Unmuted
from graph.people.lists import Lists
from graph.post_lists import TIMELINE, PostList
from graph.projections.projections import Projections


class TimelineSource(TopicSource[TimelineChange]):
    """The events that concern one of a user's post lists: the timeline or the replies.

    If the viewer mutes a user, nothing changes: users' own timelines show the posts of muted users.
    """

    def __init__(
        self,
        view: LiveView,
        views: LiveViews,
        post_list: PostList,
        owner: int,
        projections: Projections,
        index: TopicIndex,
    ) -> None:
        super().__init__(view, views, projections, index)
        self._post_list = post_list
        self._owner = owner

    @property
    def authors(self) -> Collection[int]:
        """The users whose posts the timeline contains."""
        return (self._owner,)

    @property
    def topics(self) -> Topics:
        """The lists of the authors' posts."""
        return {self._post_list.name: self.authors}

    async def visible(self, updates: Sequence[TimelineChange]) -> Sequence[TimelineChange]:
        """Return the updates that do not show a user who is currently hidden from the viewer."""
        return await self._view.visible_in_timeline(updates)

    def update_of(self, event: Event) -> TimelineChange | None:
        """Return the update caused by an event that concerns the timeline."""
        return post_or_author_update(event, self.viewer)


class ListTimelineSource(TimelineSource):
    """The events that concern the timeline of one of the viewer's lists, without the posts of muted users.

    The replay selects events by the current members. Its `TimelineChanged` updates make the client refetch the posts of
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
        index: TopicIndex,
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
        """Apply blocks, mutes and changes to the list."""
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
        """Return the updates that show no hidden user, no post of a muted user, and no repost of such a post."""
        visible = await self._view.visible_at_home(updates)
        silenced = await self._view.silenced({each.post.author for each in visible if isinstance(each, ItemAdded)})
        return [each for each in visible if not isinstance(each, ItemAdded) or each.post.author not in silenced]

    def concerns(self, event: Event) -> bool:
        """Return True if an event concerns the list, a member, or what the viewer sees."""
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
        """Return the update caused by an event that concerns the list."""
        if isinstance(event.body, ListChanged | ListDeleted):
            return TimelineChanged(event.number)
        return super().update_of(event)
