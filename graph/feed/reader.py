"""The log reader: reads the log once for all subscriptions of a process and keeps the newest events in memory."""

import asyncio
import logging
from bisect import bisect_right
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from operator import attrgetter
from typing import Protocol

from graph import keys
from graph.chunks import chunks
from graph.errors import StoreUnavailable
from graph.feed.unprojected import Unprojected
from graph.log.encoding import decode_entry
from graph.log.events import Event, PostDeleted
from graph.log.log import Log
from graph.log.losses import Losses
from graph.log.numbers import entry_id, number_of
from graph.model import MAX_NUMBER
from graph.store.store import BLOCK_SECONDS, Store
from graph.tasks import end, to_the_end

RETRY_SECONDS = 0.2
READ_BATCH = 500
MAX_RECENT = 5_000
DISPATCH_BATCH = 32  # events; with the longest texts they fill half a buffer

logger = logging.getLogger("fanline.feed")


class Listener(Protocol):
    """Receives the events that the reader reads."""

    async def look_up(self, events: Sequence[Event]) -> None:
        """Look up the data that `receive` needs for these events."""
        ...

    def receive(self, event: Event) -> bool:
        """Receive the next event. Return True if it concerns a subscription."""
        ...

    def learn(self, unprojected: Sequence[Event]) -> None:
        """Record earlier suspensions, ends of suspensions and user deletions that may not be projected yet."""
        ...

    async def throttle(self) -> None:
        """Wait, for a limited time, while subscriptions cannot keep up."""
        ...

    def lose_events(self) -> None:
        """Handle skipped events: retention removed them before they were read, or a failover lost them."""
        ...


@dataclass(frozen=True, slots=True)
class ReplayPart:
    """A part of a replay: the events up to the number `up_to`. If `lost`, the log no longer holds all of them."""

    events: Sequence[Event]
    up_to: int
    lost: bool = False


class Recent:
    """The newest events in memory: all events after the number `since`. Most replays need no older events."""

    def __init__(self, since: int, events: Sequence[Event] = ()) -> None:
        self.since = since
        self._events = list(events)

    def add(self, event: Event) -> None:
        """Add the next event. Drop the older half when there are twice as many events as needed."""
        self._events.append(event)
        if len(self._events) > 2 * MAX_RECENT:
            self.since = self._events[-MAX_RECENT - 1].number
            del self._events[:-MAX_RECENT]

    def after(self, number: int, limit: int) -> Sequence[Event]:
        """Return up to `limit` events after `number`, oldest first. `number` must not be below `since`."""
        start = bisect_right(self._events, number, key=attrgetter("number"))
        return self._events[start : start + limit]

    def get(self, number: int) -> Event | None:
        """Return the event with this number, or None if there is none after `since`."""
        found = self.after(number - 1, 1) if number > self.since else ()
        return found[0] if found and found[0].number == number else None


class LogReader:
    """Reads the log on a separate connection and passes every event to the listener, in log order.

    `head` is the number of the last event that the listener has received. `unprojected` holds the events up to the head
    that may not be projected yet; it is empty until the head is known. `lost` has a pair of numbers for each failover
    that lost events after the reader had passed them on: events after the first number, up to the second, were lost.
    """

    def __init__(self, store: Store, log: Log, listener: Listener) -> None:
        self._store = store
        self._log = log
        self._listener = listener
        self._losses = Losses(store, log)
        self._recent: Recent | None = None
        self._loading = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._progress = asyncio.Event()
        self._last_read = 0  # the number of an entry, or 0
        self.head = 0
        self.lost: tuple[tuple[int, int], ...] = ()
        self.unprojected = Unprojected(0)

    def start(self) -> None:
        """Start reading, unless the reader is already running."""
        if self._task is None or self._task.done():
            # in its own context: the reader belongs to no operation, not even to the one that starts it
            self._task = asyncio.get_running_loop().create_task(self._run(), context=Context())

    async def ready(self) -> None:
        """Start reading and wait until the head is known. Raises StoreUnavailable.

        The first call takes four round trips, and one more per 500 events that are not projected.
        """
        self.start()
        if self._recent is None:
            await self._load()

    async def wait_for_progress(self, seconds: float) -> bool:
        """Wait until more of the log has been read. Return False on timeout."""
        progress = self._progress
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await progress.wait()
        return progress.is_set()

    async def replay(self, after: int, limit: int) -> AsyncGenerator[ReplayPart]:
        """Yield the events after a number, in parts of up to `limit` events, until the head is reached.

        When the generator ends, the caller has seen every event up to the head at that time. A part costs one round
        trip unless its events are in memory. Other tasks run after each part.
        """
        while after < self.head:
            part = await self._part(after, limit)
            after = part.up_to
            yield part
            await asyncio.sleep(0)

    async def events(self, numbers: Sequence[int]) -> AsyncGenerator[list[Event]]:
        """Yield, in parts, the events with these numbers that the log still holds.

        A part costs one round trip unless its events are in memory. Other tasks run after each part.
        """
        for some in chunks(numbers, READ_BATCH):
            recent = [] if self._recent is None else [*filter(None, map(self._recent.get, some))]
            older = {*some}.difference(event.number for event in recent)
            yield [*recent, *(await self._log.get_many([*older]) if older else ())]
            await asyncio.sleep(0)

    async def _part(self, after: int, limit: int) -> ReplayPart:
        recent = self._recent
        if recent is not None and recent.since <= after:
            events = recent.after(after, limit)
            return ReplayPart(events, events[-1].number if len(events) == limit else self.head)
        events, up_to, trimmed = await self._log.after(after, self.head, limit)
        return ReplayPart([], trimmed, lost=True) if trimmed > after else ReplayPart(events, up_to)

    async def close(self) -> None:
        """Stop reading."""
        if self._task is not None:
            await end([self._task])

    async def _load(self) -> None:
        """Set the head to the end of the log, and load the newest events and all events that may not be projected yet.

        Only events after the trimmed number count as held in memory: after a failover, the log may hold older events
        without all of the events that followed them.
        """
        async with self._loading:
            if self._recent is None:
                head = await self._log.last()
                events = await self._log.newest(head, MAX_RECENT)
                since = events[0].number - 1 if events else head
                unprojected, trimmed = await self._load_unprojected(since, events)
                self.head = max(head, self.head)
                self._last_read = events[-1].number if events else 0
                self._recent = Recent(max(since, trimmed), events)
                self._set_unprojected(unprojected)

    async def _load_unprojected(self, up_to: int, newest: Sequence[Event]) -> tuple[Unprojected, int]:
        """Return the events that may not be projected yet, and the trimmed number. `newest` adds events after `up_to`.

        Events that retention removes during the load are projected. All earlier events are dropped, too, because they
        must not be applied without the removed events.
        """
        unprojected = Unprojected(await self._log.watermark())
        async for event in self._log.replay(unprojected.since, up_to):
            unprojected.add(event)
        for event in newest:
            if event.number > unprojected.since:
                unprojected.add(event)
        trimmed = await self._log.trimmed()
        unprojected.start_after(trimmed)
        return unprojected, trimmed

    async def _run(self) -> None:
        reader = self._store.reader()
        try:
            while True:
                try:
                    await self.ready()
                    await self._read_on(reader)
                    continue
                except StoreUnavailable as outage:
                    logger.warning("The live feed cannot read the log and will retry: %s", outage.reason)
                except Exception:
                    logger.exception("The live feed cannot read the log and will retry")
                await asyncio.sleep(RETRY_SECONDS)
        finally:
            await to_the_end(reader.close())

    async def _read_on(self, reader: Store) -> None:
        """Read the next events and pass them on. Two round trips.

        The entry that was read last is read again from the same server. If the server no longer holds the entry, a
        failover lost events, unless retention or a deletion has removed the entry.
        """
        read = ("XREAD", "COUNT", READ_BATCH, "BLOCK", int(BLOCK_SECONDS * 1000), "STREAMS", keys.LOG)
        last = entry_id(self._last_read)
        reply, held = await reader.send([(*read, entry_id(self.head)), ("XRANGE", keys.LOG, last, last)])
        entries = reply[keys.LOG] if reply else []
        events = [event for event in map(decode_entry, entries) if event is not None]
        trimmed, _ = await asyncio.gather(self._log.trimmed(), self._listener.look_up(events))
        watermark = self._log.known_watermark
        if trimmed > self.head:
            self.head = number_of(entries[0][0]) - 1 if entries else trimmed
            self._recent = Recent(self.head)
            self.unprojected = Unprojected(self.head)
            self._listener.lose_events()
        elif not held and self._last_read > trimmed and not await self._is_scrubbed(self._last_read):
            await self._step_back(trimmed)
            return
        if watermark < self.unprojected.since:  # a failover has lost projections
            unprojected, _ = await self._load_unprojected(self.head, ())
            self._set_unprojected(unprojected)
        for some in chunks(events, DISPATCH_BATCH):
            if sum(map(self._pass_on, some)):
                await self._listener.throttle()
        if entries:
            self.head = self._last_read = number_of(entries[-1][0])
        self.unprojected.note_watermark(watermark, self.head)
        self._log.seen = max(self._log.seen, self.head)
        if entries:
            self._progress.set()
            self._progress = asyncio.Event()

    async def _is_scrubbed(self, post: int) -> bool:
        """Return True if a later event deletes the post: its publication is then removed from the log.

        One round trip per 500 events.
        """
        later = self._log.replay(post, MAX_NUMBER)
        return post in {event.body.post async for event in later if isinstance(event.body, PostDeleted)}

    async def _step_back(self, trimmed: int) -> None:
        """Move the head back to the last event that the log still holds, after a failover lost later events."""
        kept = await self._log.newest(self.head, 1)
        last = kept[0].number if kept else trimmed
        unprojected, _ = await self._load_unprojected(last, ())
        await self._losses.note(self.head)
        logger.warning("A failover lost events after %d, but events up to %d were streamed", last, self.head)
        self.lost = (*self.lost, (last, self.head))
        self.head = last
        self._last_read = kept[0].number if kept else 0
        self._recent = Recent(last)
        self._listener.lose_events()
        self._set_unprojected(unprojected)

    def _set_unprojected(self, unprojected: Unprojected) -> None:
        self.unprojected = unprojected
        self._listener.learn(unprojected.of_all())

    def _pass_on(self, event: Event) -> bool:
        """Move the head and call the listener in one step, so that subscriptions either replay or receive the event."""
        if self._recent is not None:
            self._recent.add(event)
        self.unprojected.add(event)
        self.head = event.number
        return self._listener.receive(event)
