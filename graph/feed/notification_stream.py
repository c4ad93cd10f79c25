"""The stream of one viewer's notifications: combines the updates of a subscription, and reads what it sends.

Updates wait until they are due: a moment after the first, so that the process that committed the event has projected
it, and a second after the updates that were sent last. Of several updates in a group only the newest is sent, and at
most one change of the whole list. So a group is sent at most once a second, however often it is liked. Updates are sent
in the order of their numbers: a client that resumes after any of them gets those that it lacks.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field
from typing import Any

from graph.errors import ArchiveUnavailable, StoreUnavailable
from graph.feed.updates import (
    Checkpoint,
    Gap,
    Notice,
    NotificationAdded,
    NotificationChange,
    NotificationsChanged,
    NotificationUpdate,
)
from graph.log.events import Event
from graph.log.log import Log
from graph.notifications.groups import Group, Notification
from graph.notifications.notifications import Notifications
from graph.projections.mode import Mode
from graph.projections.projections import Projections
from graph.tasks import end
from graph.visibility import Visibility

SETTLE_SECONDS = 0.05
SEND_SECONDS = 1.0
RETRY_SECONDS = 0.5
MAX_WAITING = 1000


@dataclass(slots=True)
class Waiting:
    """The updates that wait to be sent: the newest of each group, and the newest change of the whole list."""

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


class NotificationStream:
    """Sends the updates of one viewer's notifications."""

    def __init__(
        self, viewer: int, log: Log, notifications: Notifications, projections: Projections, visibility: Visibility
    ) -> None:
        self._viewer = viewer
        self._log = log
        self._notifications = notifications
        self._projections = projections
        self._visibility = visibility

    async def updates(self, source: AsyncGenerator[Notice | Checkpoint | Gap]) -> AsyncGenerator[NotificationUpdate]:
        """Yield what the updates of a subscription amount to. Raises the errors of the subscription."""
        clock = asyncio.get_running_loop().time
        waiting, due, sent_at = Waiting(), 0.0, -SEND_SECONDS
        upcoming = asyncio.create_task(_next_of(source))
        try:
            while True:
                await asyncio.wait([upcoming], timeout=max(0.0, due - clock()) if waiting else None)
                update = None
                if upcoming.done():
                    update, upcoming = upcoming.result(), asyncio.create_task(_next_of(source))
                if isinstance(update, Notice):
                    due = due if waiting else max(clock() + SETTLE_SECONDS, sent_at + SEND_SECONDS)
                    waiting.add(update)
                if waiting and (clock() >= due or len(waiting) >= MAX_WAITING or isinstance(update, Gap)):
                    for change in await self._read(waiting, upcoming):
                        yield change
                        raise_error(upcoming)
                    waiting, sent_at = Waiting(), clock()
                if isinstance(update, Gap) or (isinstance(update, Checkpoint) and not waiting):
                    yield update
        finally:
            await end([upcoming])
            if not upcoming.cancelled():
                upcoming.exception()  # retrieved: nobody reads on, so the end of the session is no news
            await source.aclose()

    async def _read(self, waiting: Waiting, upcoming: "asyncio.Task[Any]") -> list[NotificationChange]:
        """Return the updates to send, in the order of their numbers. Wait while the store or the archive is down.

        Raises the error of a subscription that ends meanwhile.
        """
        while True:
            try:
                changes = await self._read_once(waiting)
            except (StoreUnavailable, ArchiveUnavailable):
                raise_error(upcoming)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                raise_error(upcoming)
                return changes

    async def _read_once(self, waiting: Waiting) -> list[NotificationChange]:
        """Return the updates to send. Two round trips, and more if events are not projected.

        A change is sent although the viewer may have seen its effect. A group that has vanished is left out.
        """
        watermark = await self._log.recent_watermark()
        await self._project(event for event in waiting.changes if event.number > watermark)
        found = await self._find(waiting.added)
        lacking = [
            event
            for group, event in waiting.added.items()
            if event.number > watermark and (group not in found or found[group].number < event.number)
        ]
        if lacking:
            await self._project(lacking)
            found = await self._find(waiting.added)
        changes: list[NotificationChange] = [
            NotificationAdded(event.number, found[group]) for group, event in waiting.added.items() if group in found
        ]
        if waiting.changes:
            changes.append(NotificationsChanged(max(event.number for event in waiting.changes)))
        return sorted(changes, key=lambda change: change.number)

    async def _project(self, events: Iterable[Event]) -> None:
        """Project events whose process may have died after the commit, or is still projecting them."""
        await self._projections.project(list(events), Mode.CATCH_UP)

    async def _find(self, groups: Iterable[Group]) -> dict[Group, Notification]:
        wanted = list(groups)
        found = await self._notifications.get_many(self._visibility.of(self._viewer), wanted)
        return {group: each for group, each in zip(wanted, found, strict=True) if each is not None}


async def _next_of(source: AsyncGenerator[Notice | Checkpoint | Gap]) -> Notice | Checkpoint | Gap:
    return await anext(source)


def raise_error(upcoming: "asyncio.Task[Any]") -> None:
    """Raise the error with which a task has ended, if it has."""
    if upcoming.done():
        upcoming.result()
