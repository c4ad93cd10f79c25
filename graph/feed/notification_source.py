"""Notification streams: the source of a subscription, and the index that finds the streams an event concerns."""

from collections.abc import Iterator, Sequence

from graph.feed.buffer import Buffer
from graph.feed.source import Source
from graph.feed.updates import Notice
from graph.log.events import Blocked, Event, NotificationsRead, PostDeleted, Unblocked, Unfollowed, Unliked, Unreposted
from graph.log.pair_events import Muted, Unmuted
from graph.log.recipients import concerned, is_renewed, recipients


def notices(event: Event) -> Iterator[tuple[int, Notice]]:
    """Yield the users whose streams an event concerns, each with the update.

    O(n) in the number of recipients, which is at most 22.
    """
    for user, group in recipients(event):
        yield user, Notice(event.number, event, group)
    for user in users_of_change(event):
        yield user, Notice(event.number, event, None)


def users_of_change(event: Event) -> tuple[int, ...]:
    """Return the users whose whole list of notifications an event may change.

    Either the user has read the list, or groups disappear or reappear because another user has undone or repeated an
    action, a user is muted or blocked, or a post is deleted.
    """
    if is_renewed(event):
        return tuple(user for user, _ in concerned(event))
    match event.body:
        case NotificationsRead(user=user) | Unfollowed(followee=user) | Unliked(author=user):
            return (user,)
        case Muted(muter=user) | Unmuted(muter=user):
            return (user,)
        case Unreposted(author=author):
            return () if author is None else (author,)
        case Blocked(user, other) | Unblocked(user, other):
            return user, other
        case PostDeleted(author=author, notified=notified):
            return author, *notified
        case _:
            return ()


class NotificationIndex:
    """The buffers of live notification streams, by viewer."""

    def __init__(self) -> None:
        self._by_viewer: dict[int, list[Buffer[Notice]]] = {}

    def add(self, viewer: int, buffer: Buffer[Notice]) -> None:
        """Add a live stream of a viewer."""
        self._by_viewer.setdefault(viewer, []).append(buffer)

    def remove(self, viewer: int, buffer: Buffer[Notice]) -> None:
        """Remove a stream, if it is in the index."""
        buffers = self._by_viewer.get(viewer, [])
        if buffer in buffers:
            buffers.remove(buffer)
        if not buffers:
            self._by_viewer.pop(viewer, None)

    def has_receivers(self, event: Event) -> bool:
        """Return True if an event concerns at least one live stream."""
        return bool(self._by_viewer) and any(user in self._by_viewer for user, _ in notices(event))

    def receivers(self, event: Event) -> list[tuple[Notice, list[Buffer[Notice]]]]:
        """Return the updates of an event, each with the buffers that get it."""
        if not self._by_viewer:
            return []
        found = ((notice, self._by_viewer.get(user)) for user, notice in notices(event))
        return [(notice, buffers) for notice, buffers in found if buffers]


class NotificationSource(Source[Notice]):
    """The events that concern one viewer's notifications."""

    viewer: int

    def __init__(self, viewer: int, index: NotificationIndex) -> None:
        self.viewer = viewer
        self._index = index

    def select(self, events: Sequence[Event]) -> list[Event]:
        """Return the events that concern the viewer's notifications."""
        return [event for event in events if any(user == self.viewer for user, _ in notices(event))]

    def updates_of(self, events: Sequence[Event]) -> list[Notice]:
        """Return the updates of selected events."""
        return [notice for event in events for user, notice in notices(event) if user == self.viewer]

    def register(self, buffer: Buffer[Notice]) -> None:
        """Add the buffer to the index of notification streams."""
        self._index.add(self.viewer, buffer)

    def unregister(self, buffer: Buffer[Notice]) -> None:
        """Remove the buffer from the index of notification streams."""
        self._index.remove(self.viewer, buffer)
