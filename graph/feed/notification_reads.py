"""Reads the notifications that notification streams send.

Of the waiting updates of a group of notifications, only the newest is sent. Changes of the whole list are combined into
one update. A group is therefore sent at most once a second, however often its post is liked.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from graph.archive.usage import Usage, used_by
from graph.feed.combined_stream import StreamReads
from graph.feed.updates import Notice, NotificationAdded, NotificationChange, NotificationsChanged
from graph.log.events import Event
from graph.log.log import Log
from graph.log.notification_groups import Group, Notification
from graph.notifications.notifications import Notifications
from graph.projections.mode import Mode
from graph.projections.projections import Projections
from graph.visibility.views import Visibility


@dataclass(slots=True)
class Waiting:
    """The updates that are waiting to be sent: the newest of each group, and all changes of the whole list."""

    added: dict[Group, Event] = field(default_factory=dict)
    changes: list[Event] = field(default_factory=list)

    def add(self, notice: Notice) -> None:
        """Add an update."""
        if notice.group is None:
            self.changes.append(notice.event)
        else:
            self.added[notice.group] = notice.event

    def __len__(self) -> int:
        """Return the number of updates."""
        return len(self.added) + len(self.changes)

    def key(self) -> Hashable:
        """Return a value that is the same for two streams if they have the same updates to send."""
        added = frozenset((group, event.number) for group, event in self.added.items())
        return added, tuple(event.number for event in self.changes)


class NotificationReads(StreamReads[Notice, NotificationChange, Waiting]):
    """The alarms and reads of the notification streams of a process."""

    def __init__(
        self, log: Log, notifications: Notifications, projections: Projections, visibility: Visibility
    ) -> None:
        super().__init__()
        self._log = log
        self._notifications = notifications
        self._projections = projections
        self._visibility = visibility

    def waiting(self) -> Waiting:
        """Return an empty collection for waiting updates."""
        return Waiting()

    async def load(self, subject: int, waiting: Waiting) -> list[NotificationChange]:
        """Return the updates to send to the viewer `subject`, in the order of their numbers.

        Two round trips, and more if events are not projected yet. A change of the whole list is sent even if the viewer
        may have seen its effect. Groups that no longer exist are left out.
        """
        with used_by(Usage(f"user:{subject}", anonymous=False)):
            return await self._load(subject, waiting)

    async def _load(self, viewer: int, waiting: Waiting) -> list[NotificationChange]:
        watermark = await self._log.recent_watermark()
        await self._project(event for event in waiting.changes if event.number > watermark)
        found = await self._find(viewer, waiting.added)
        lacking = [
            event
            for group, event in waiting.added.items()
            if event.number > watermark and (group not in found or found[group].number < event.number)
        ]
        if lacking:
            await self._project(lacking)
            found = await self._find(viewer, waiting.added)
        changes: list[NotificationChange] = [
            NotificationAdded(event.number, found[group]) for group, event in waiting.added.items() if group in found
        ]
        if waiting.changes:
            changes.append(NotificationsChanged(max(event.number for event in waiting.changes)))
        return sorted(changes, key=lambda change: change.number)

    async def _project(self, events: Iterable[Event]) -> None:
        """Project events: the process that committed them may have died since, or may still be projecting them."""
        await self._projections.project(list(events), Mode.CATCH_UP)

    async def _find(self, viewer: int, groups: Iterable[Group]) -> dict[Group, Notification]:
        wanted = list(groups)
        found = await self._notifications.get_many(self._visibility.of(viewer), wanted)
        return {group: each for group, each in zip(wanted, found, strict=True) if each is not None}
