"""The eraser: removes the remaining data of deleted users, in the background.

`UserDeleted` hides a user at once, and from then on the log refuses the user's events. The eraser waits until all
earlier events are projected. Then it reads the user's posts, likes and relations, and appends ordinary events that end
them. These events pass through the same projections, archive and streams as the user's own events would, so that all
counts stay exact. When no posts, likes or relations are left in the store or the archive, the eraser empties the user's
texts in the archive, removes them from the log, and appends `UserErased`, whose projection removes the rest.
`tests/properties/erasure_explorer.py` shows that the refusal, the wait and the reads of the archive are needed.

The eraser stores no progress: its reads show what is left to do. It may be interrupted at any point, and two erasers
only repeat each other's work.
"""

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from graph import keys
from graph.archive.rows import ArchiveChanged
from graph.archiver.lease import Lease
from graph.binding import Binding
from graph.erasure.remains import AT_ONCE, FIRST_POSITION, ReadPosition, Remains
from graph.errors import ArchiveUnavailable, Overloaded, StoreReplaced, StoreUnavailable, WrongArchive
from graph.log.account_events import UserErased
from graph.log.dead_letters import DeadLetters
from graph.log.events import EventBody
from graph.log.log import Log
from graph.log.numbers import entry_id
from graph.store.store import Store

ROWS_AT_ONCE = 1000
UNARCHIVED_STEPS = 10
"""The maximum number of appends that are not archived yet, so that the eraser does not fill the log during an outage.
"""
BUSY_SHARE = 0.5
POLL_SECONDS = 0.05
PAUSE_SECONDS = 1.0
RETRY_SECONDS = 5.0
CHECK_SECONDS = 3600.0
"""The pause before an idle eraser looks again for erased users who are members of lists."""

logger = logging.getLogger("fanline.eraser")


class Progress(Enum):
    """The result of a step of the eraser."""

    IDLE = "idle"
    """There is no user to erase."""
    WAITING = "waiting"
    """Events must be projected or archived first."""
    WORKED = "worked"
    """There may be more to do."""


@dataclass(slots=True)
class Erasure:
    """The progress of a user's erasure in this process.

    All events up to `up_to` must be projected before the user's sets are read again, and archived before the archive is
    read. `appended` has the last event number of each recent append, and `last` the events of the most recent append.

    Relations that other users have with the user, and the user's events with texts, are read in order. `others` is the
    position of the next read of relations, and `text_after` the number of the last event with texts that was read; both
    are None when all are read. When relations were first read, the archive held all events up to `others_up_to`.
    `is_repeated` is True if the user was erased before and is being erased again.
    """

    user: int
    up_to: int
    appended: deque[int] = field(default_factory=lambda: deque(maxlen=UNARCHIVED_STEPS))
    last: Sequence[EventBody] = ()
    others: ReadPosition | None = FIRST_POSITION
    others_up_to: int = 0
    text_after: int | None = 0
    is_repeated: bool = False


class Eraser:
    """Erases deleted users, earliest deletion first. A step removes about `at_once` elements, such as posts or likes.

    `erased` counts the users that this process has erased, and `events_appended` the events that it has appended.
    """

    def __init__(
        self,
        store: Store,
        log: Log,
        binding: Binding,
        dead_letters: DeadLetters,
        lease: Lease,
        *,
        at_once: int = AT_ONCE,
        rows: int = ROWS_AT_ONCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._log = log
        self._binding = binding
        self._dead_letters = dead_letters
        self._lease = lease
        self._rows = rows
        self._remains = Remains(store, binding, at_once)
        self._clock = clock
        self._next_check = -math.inf
        self._erasure: Erasure | None = None
        self.erased = 0
        self.events_appended = 0

    async def run(self) -> None:
        """Erase users while this process holds the lease, until cancelled. Continue after outages.

        After a step that did some work, rest for as long as the step took.
        """
        loop = asyncio.get_running_loop()
        while True:
            started, pause = loop.time(), PAUSE_SECONDS
            try:
                if self._lease.is_held:
                    match await self.step():
                        case Progress.WORKED:
                            spent = loop.time() - started
                            pause = spent / BUSY_SHARE - spent
                        case Progress.WAITING:
                            pause = POLL_SECONDS
                else:
                    self._erasure = None
            except (ArchiveUnavailable, StoreUnavailable, Overloaded) as outage:
                logger.warning("The erasure of a deleted user was interrupted: %s", outage)
                pause = self._begin_anew()
            except (ArchiveChanged, StoreReplaced, WrongArchive):
                logger.warning("The erasure of a deleted user was interrupted: the store or the archive was replaced")
                self._binding.forget()
                pause = self._begin_anew()
            except Exception:
                logger.exception("The erasure of a deleted user failed and will be retried")
                pause = self._begin_anew()
            await asyncio.sleep(pause)

    def _begin_anew(self) -> float:
        """Discard the progress of this process, and return the seconds until the next attempt."""
        self._erasure = None
        return RETRY_SECONDS

    async def step(self) -> Progress:
        """Do the next piece of work for the user whose deletion is the earliest.

        A step appends up to about 500 events, or changes at most 1,000 rows of the archive, or finishes the erasure. Up
        to about seven round trips, three queries and three transactions. Raises ArchiveUnavailable, StoreUnavailable,
        Overloaded, WrongArchive, StoreReplaced and ArchiveChanged.
        """
        watermark, archived, waiting = await self._store.read(
            [("GET", keys.WATERMARK), ("GET", keys.ARCHIVED), ("ZRANGE", keys.ERASING, 0, 0)]
        )
        if waiting:
            user, is_repeated = int(waiting[0]), False
        elif (again := await self._erased_list_member()) is not None:
            user, is_repeated = again, True
        else:
            self._erasure = None
            return Progress.IDLE
        if self._erasure is None or (self._erasure.user, self._erasure.is_repeated) != (user, is_repeated):
            # the events of another eraser are projected first, so that they are not appended again
            self._erasure = Erasure(user, await self._log.last(), is_repeated=is_repeated)
        return await self._go_on(self._erasure, int(watermark or 0), int(archived or 0))

    async def _erased_list_member(self) -> int | None:
        """Return an erased user who may be a member of a list, or None.

        One query, at most once an hour if it finds none. Earlier versions left erased users in lists, and an event that
        is appended during the erasure can still add the user to a list.
        """
        if self._erasure is not None and self._erasure.is_repeated:
            return self._erasure.user
        now = self._clock()
        if now < self._next_check:
            return None
        self._next_check = now + CHECK_SECONDS
        found = await (await self._binding.archive()).erased_list_members(1)
        if found:
            self._next_check = now
        return next(iter(found), None)

    async def _go_on(self, erasure: Erasure, watermark: int, archived: int) -> Progress:
        """Do the next part of the erasure.

        End the elements in the store, then those in the archive, then other users' relations with the user. Then remove
        the texts. Then append `UserErased`, unless the user was erased before.
        """
        appended = erasure.appended
        if watermark < erasure.up_to or (len(appended) == UNARCHIVED_STEPS and archived < appended[0]):
            return Progress.WAITING
        if ends := await self._remains.in_store(erasure.user):
            if ends != erasure.last:
                return await self._append(erasure, ends)
            logger.error("Events of deleted user %d have no effect: %s", erasure.user, ends[0])
        if min(watermark, archived) < erasure.up_to:
            return Progress.WAITING
        ends = await self._remains.in_archive(erasure.user)
        if ends and ends != erasure.last:
            return await self._append(erasure, ends)
        if erasure.others == FIRST_POSITION:
            erasure.others_up_to = erasure.up_to
        if erasure.others is not None:
            ends, erasure.others = await self._remains.of_others(erasure.user, erasure.others)
            return await self._append(erasure, ends) if ends else Progress.WORKED
        if await self._redact(erasure):
            return Progress.WORKED
        if erasure.is_repeated:
            self._erasure = None
            return Progress.WORKED
        await self._append(erasure, [UserErased(erasure.user)])
        logger.info("Deleted user %d has been erased", erasure.user)
        self.erased += 1
        return Progress.WORKED

    async def _append(self, erasure: Erasure, ends: Sequence[EventBody]) -> Progress:
        events = await self._log.append(ends, binding=await self._binding.token(), erasing=True)
        erasure.up_to, erasure.last = events[-1].number, ends
        erasure.appended.append(erasure.up_to)
        self.events_appended += len(events)
        return Progress.WORKED

    async def _redact(self, erasure: Erasure) -> bool:
        """Remove the next texts of a user from the archive, the log and the dead letters, then the user's other rows.

        Return False when nothing is left. All events of the user must be archived.
        """
        archive, store = await self._binding.archive(), await self._binding.store_id()
        if erasure.text_after is not None:
            numbers = await archive.erase_texts(erasure.user, erasure.text_after, self._rows, store)
            entries = [entry_id(number) for number in numbers]
            if entries:
                await self._store.run("XDEL", keys.LOG, *entries)
                await self._dead_letters.remove({*entries})
            erasure.text_after = numbers[-1] if len(numbers) == self._rows else None
            return True
        if await archive.erase_notifications(erasure.user, store):
            return True
        await archive.erase_list_members(erasure.user, erasure.others_up_to, store)
        await archive.erase_names(erasure.user, store)
        return False
