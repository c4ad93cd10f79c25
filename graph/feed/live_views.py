"""The views of live subscriptions: what is hidden from their viewers now, without a look-up per update.

A view reads the viewer's blocks when its subscription joins, and then applies later blocks from the log. For a viewer
with very many blocks, each batch of updates costs one look-up instead. The set of suspended users is held in the memory
of the process, and the feed keeps it up to date with the log.
"""

from collections.abc import Callable, Iterable, Sequence, Set
from typing import TypeVar

from graph.feed.updates import (
    ItemRemoved,
    PostAdded,
    PostRemoved,
    RepostAdded,
    RepostRemoved,
    UserFollowed,
    UserUnfollowed,
)
from graph.log.events import Blocked, Event, Unblocked
from graph.log.pair_events import Muted, Unmuted
from graph.visibility.views import Exclusions, Visibility

C = TypeVar("C")


class LiveView:
    """The view of one subscription. `exclusions` holds the blocks and mutes of its viewer in memory."""

    def __init__(self, visibility: Visibility, viewer: int | None) -> None:
        self.viewer = viewer
        self.exclusions = Exclusions()
        self._visibility = visibility

    async def load(self) -> None:
        """Read the viewer's exclusions and the suspensions. One round trip, shared with other reads."""
        view = self._visibility.of(self.viewer)
        read, _ = await view.exclusions([]), await view.suspended([])
        self.exclusions = Exclusions(read.complete, {*read.blocking}, {*read.blockers}, {*read.muting})

    def apply(self, events: Iterable[Event]) -> None:
        """Apply the viewer's blocks and mutes, and blocks against the viewer, from events in log order."""
        for event in events:
            match event.body:
                case Blocked() | Unblocked() as body if self.viewer in (body.blocker, body.blocked):
                    by_viewer = body.blocker == self.viewer
                    users, user = (
                        (self.exclusions.blocking, body.blocked)
                        if by_viewer
                        else (self.exclusions.blockers, body.blocker)
                    )
                    (users.add if isinstance(body, Blocked) else users.discard)(user)
                case Muted(muter, user) if muter == self.viewer:
                    self.exclusions.muting.add(user)
                case Unmuted(muter, user) if muter == self.viewer:
                    self.exclusions.muting.discard(user)
                case _:
                    pass

    async def blocked(self, users: Set[int]) -> Set[int]:
        """Return the given users who block the viewer or are blocked by the viewer.

        No round trip, or one if the viewer has too many blocks to keep in memory.
        """
        found = {user for user in users if self.exclusions.hides(user)}
        if self.exclusions.complete or not users:
            return found
        exclusions = await self._visibility.of(self.viewer).exclusions(users)
        return found | {user for user in users if exclusions.hides(user)}

    async def hidden(self, users: Set[int]) -> Set[int]:
        """Return the given users who are hidden from the viewer. Costs the same as `blocked`."""
        return await self.blocked(users) | self._visibility.suspended_now(users)

    async def silenced(self, users: Set[int]) -> Set[int]:
        """Return the given users who are hidden or muted. Costs the same as `blocked`."""
        found = {user for user in users if self.exclusions.silences(user)} | self._visibility.suspended_now(users)
        if self.exclusions.complete or not users:
            return found
        return found | await self._visibility.of(self.viewer).silenced(users)

    async def visible_in_events(self, updates: Sequence[C]) -> Sequence[C]:
        """Return the updates that do not show a hidden user. Costs the same as `blocked`.

        Removals of posts by suspended and deleted users are returned, too: they reveal nothing, and clients must drop
        the removed posts.
        """
        if self._sees_all(updates):
            return updates
        users = {user for update in updates for user in users_of(update)}
        blocked = await self.blocked(users)
        hidden = blocked | self._visibility.suspended_now(users)

        def is_visible(update: C) -> bool:
            return (blocked if isinstance(update, ItemRemoved) else hidden).isdisjoint(users_of(update))

        return list(filter(is_visible, updates))

    async def visible_in_timeline(self, updates: Sequence[C]) -> Sequence[C]:
        """Return the updates that do not show a hidden user. Costs the same as `blocked`.

        Removals of posts by suspended and deleted users are left out: `AuthorHidden` has told the client to drop all
        posts of these users.
        """
        if self._sees_all(updates):
            return updates
        users = {user for update in updates for user in users_of(update)}
        hidden = await self.hidden(users)
        return [update for update in updates if hidden.isdisjoint(users_of(update))]

    async def visible_at_home(self, updates: Sequence[C]) -> Sequence[C]:
        """Return the updates of `visible_in_timeline` that are not plain reposts of silenced users' posts.

        Costs the same, or twice as much if there are plain reposts.
        """
        visible = await self.visible_in_timeline(updates)
        silenced = await self.silenced({each.original_author for each in visible if isinstance(each, RepostAdded)})
        return [each for each in visible if not isinstance(each, RepostAdded) or each.original_author not in silenced]

    def sees(self, update: object) -> bool:
        """Return True if all blocks and mutes are in memory and no user in the update is hidden or silenced."""
        if not self.exclusions.complete:
            return False
        silences, suspended = self.exclusions.silences, self._visibility.all_suspended_now
        return not any(user in suspended or silences(user) for user in users_of(update))

    def _sees_all(self, updates: Sequence[object]) -> bool:
        return all(map(self.sees, updates))


class LiveViews:
    """The views of the live subscriptions of a process, by viewer."""

    def __init__(self) -> None:
        self._views: dict[int, list[LiveView]] = {}

    def add(self, view: LiveView) -> Callable[[], None]:
        """Add a view. Return a function that removes it."""
        if view.viewer is None:
            return nothing
        viewer, views = view.viewer, self._views.setdefault(view.viewer, [])
        views.append(view)

        def remove() -> None:
            views.remove(view)
            if not views and self._views.get(viewer) is views:
                del self._views[viewer]

        return remove

    def apply(self, event: Event) -> None:
        """Apply an event to the views that it concerns."""
        match event.body:
            case Blocked(user, other) | Unblocked(user, other):
                users: tuple[int, ...] = (user, other)
            case Muted(user, _) | Unmuted(user, _):
                users = (user,)
            case _:
                return
        for viewer in users:
            for view in self._views.get(viewer, ()):
                view.apply([event])


def users_of(update: object) -> tuple[int, ...]:
    """Return the users whom an update shows: the authors of a post and of its original, or both sides of a follow.

    Updates about the viewer's own relationships show no users.
    """
    match update:
        case PostAdded(_, post):
            return (post.author,)
        case RepostAdded(_, post, original_author):
            return post.author, original_author
        case PostRemoved() | RepostRemoved():
            return (update.author,)
        case UserFollowed() | UserUnfollowed():
            return update.follower, update.followee
        case _:
            return ()


def nothing() -> None:
    """Do nothing."""
