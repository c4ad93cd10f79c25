"""The stream of one viewer's notifications: combines updates, and reads the notifications that they announce.

Updates wait until they are due: 50 ms after the first, so that the process that committed the event has projected it,
and at least a second after the previous updates were sent. Of several updates in a group, only the newest is sent, and
at most one change of the whole list. So a group is sent at most once a second, however often its post is liked. Updates
are sent in the order of their numbers: a client that resumes after any of them gets the ones that it missed.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

from graph.errors import ArchiveUnavailable, StoreUnavailable
from graph.feed.notification_reads import Alarm, NotificationReads, Waiting
from graph.feed.updates import Checkpoint, Gap, Notice, NotificationChange, NotificationUpdate
from graph.tasks import end

SETTLE_SECONDS = 0.05
SEND_SECONDS = 1.0
RETRY_SECONDS = 0.5
MAX_WAITING = 1000


class NotificationStream:
    """Sends the updates of one viewer's notifications.

    `delay` returns how many seconds longer updates must wait because the viewer has exceeded the rate limit of events.
    """

    def __init__(self, viewer: int, reads: NotificationReads, delay: Callable[[], float]) -> None:
        self._viewer = viewer
        self._reads = reads
        self._delay = delay

    async def updates(self, source: AsyncGenerator[Notice | Checkpoint | Gap]) -> AsyncGenerator[NotificationUpdate]:
        """Combine the updates of a subscription, and yield the results. Raises the errors of the subscription."""
        clock = asyncio.get_running_loop().time
        waiting, gap, sent_at = Waiting(), None, -SEND_SECONDS
        alarm: Alarm | None = None
        upcoming = asyncio.create_task(_next_of(source))
        try:
            while True:
                is_full = gap is not None or len(waiting) >= MAX_WAITING
                await _first_of(alarm, None if is_full and alarm is not None else upcoming)
                if upcoming.done() and not is_full:
                    update, upcoming = upcoming.result(), asyncio.create_task(_next_of(source))
                    if isinstance(update, Notice):
                        waiting.add(update)
                        at = max(clock() + SETTLE_SECONDS, sent_at + SEND_SECONDS)
                        alarm = alarm or self._reads.alarm(self._viewer, at)
                    elif isinstance(update, Gap):
                        gap = update
                    elif not waiting:
                        yield update
                rings = alarm is not None and alarm.rings.done()
                if rings or gap is not None or len(waiting) >= MAX_WAITING:
                    raise_error(upcoming)
                    if waiting and (delay := self._delay()):
                        alarm = self._reads.alarm(self._viewer, clock() + delay)
                        continue
                    sent_at = alarm.at if alarm is not None and rings else clock()
                    for change in await self._read(waiting, upcoming) if waiting else ():
                        yield change
                        raise_error(upcoming)
                    if gap is not None:
                        yield gap
                    waiting, gap, alarm = Waiting(), None, None
        finally:
            await end([upcoming])
            if not upcoming.cancelled():
                upcoming.exception()  # mark as retrieved: the stream ends in any case
            await source.aclose()

    async def _read(self, waiting: Waiting, upcoming: "asyncio.Task[Any]") -> list[NotificationChange]:
        """Return the updates to send, in the order of their numbers. Wait while the store or the archive is down.

        Raises the error of a subscription that ends meanwhile.
        """
        while True:
            try:
                changes = await self._reads.read(self._viewer, waiting)
            except (StoreUnavailable, ArchiveUnavailable):
                raise_error(upcoming)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                raise_error(upcoming)
                return changes


async def _next_of(source: AsyncGenerator[Notice | Checkpoint | Gap]) -> Notice | Checkpoint | Gap:
    return await anext(source)


def raise_error(upcoming: "asyncio.Task[Any]") -> None:
    """Raise the error of the task if it has failed."""
    if upcoming.done():
        upcoming.result()


async def _first_of(alarm: Alarm | None, upcoming: "asyncio.Task[Any] | None") -> None:
    """Wait until an alarm rings or the next update of a subscription arrives."""
    awaited: list[asyncio.Future[Any]] = [] if alarm is None else [alarm.rings]
    if upcoming is not None:
        awaited.append(upcoming)
    await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
