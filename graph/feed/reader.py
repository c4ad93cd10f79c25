"""The one reader of the log in a process: it follows the log on a connection of its own, and keeps what is recent."""

import asyncio
import logging
from bisect import bisect_right
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from typing import Protocol

from graph import keys
from graph.errors import StoreUnavailable
from graph.log.events import Event, decode_entry
from graph.log.log import Log
from graph.log.numbers import entry_id, number_of
from graph.store.store import BLOCK_SECONDS, Store
from graph.tasks import end

PAUSE_SECONDS = 0.2
READ_AT_ONCE = 500
MAX_RECENT = 5_000
PASSED_AT_ONCE = 32  # events; with the longest texts they take half of what a stream may buffer

logger = logging.getLogger("fanline.feed")


class Listener(Protocol):
    """Whom the reader tells."""

    async def prepare(self, events: Sequence[Event]) -> None:
        """Look up what is needed for these events, before they are received one by one."""
        ...

    def receive(self, event: Event) -> int:
        """Pass an event on; tell to how many streams."""
        ...

    async def digest(self) -> None:
        """Wait, for a while, if the process cannot keep up with the events."""
        ...

    def lose(self) -> None:
        """Hear that retention has removed events that nobody here has read."""
        ...


@dataclass(frozen=True, slots=True)
class Replayed:
    """Events of the past, up to a number; or, `lost`, the number up to which retention has removed some."""

    events: Sequence[Event]
    upto: int
    lost: bool = False


class Recent:
    """The newest events, in memory: all after the number `since`. Most streams that join or resume need no others."""

    def __init__(self, since: int, events: Sequence[Event] = ()) -> None:
        self.since = since
        self._events = list(events)

    def add(self, event: Event) -> None:
        """Add the next event; from time to time the older half goes."""
        self._events.append(event)
        if len(self._events) > 2 * MAX_RECENT:
            self.since = self._events[-MAX_RECENT - 1].number
            del self._events[:-MAX_RECENT]

    def after(self, number: int, most: int) -> Sequence[Event]:
        """Give the events after a number that is not below `since`, oldest first."""
        start = bisect_right(self._events, number, key=attrgetter("number"))
        return self._events[start : start + most]


class LogReader:
    """Reads the log once for all streams of a process, and tells the listener each event in its order.

    `head` is the number of the last event that the listener has received.
    """

    def __init__(self, store: Store, log: Log, listener: Listener) -> None:
        self._store = store
        self._log = log
        self._listener = listener
        self._recent: Recent | None = None
        self._positioning = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()
        self.head = 0

    def start(self) -> None:
        """Start to read, unless it has begun."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._follow())

    async def ready(self) -> None:
        """Start, and wait until the head is known: three round trips once. Raises StoreUnavailable."""
        self.start()
        if self._recent is None:
            await self._position()

    @property
    def remembers_after(self) -> int:
        """The number after which all events are in memory."""
        return self.head if self._recent is None else self._recent.since

    async def moves(self, seconds: float) -> bool:
        """Wait until the reader has read more of the log. Return False if it has not in so many seconds."""
        moved = self._moved
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await moved.wait()
        return moved.is_set()

    async def replay(self, after: int, most: int | None = None) -> AsyncGenerator[Replayed]:
        """Yield the events after a number, in parts of `most`, up to the head as it is at the very moment this ends.

        From memory what is recent; the rest costs one round trip a part. Others have their turn after every part.
        """
        while after < self.head:
            part = await self._part(after, most or READ_AT_ONCE)
            after = part.upto
            yield part
            await asyncio.sleep(0)

    async def _part(self, after: int, most: int) -> Replayed:
        recent = self._recent
        if recent is not None and recent.since <= after:
            events = recent.after(after, most)
            return Replayed(events, events[-1].number if len(events) == most else self.head)
        events, upto, trimmed = await self._log.after(after, self.head, most)
        return Replayed([], trimmed, lost=True) if trimmed > after else Replayed(events, upto)

    async def close(self) -> None:
        """Stop reading."""
        if self._task is not None:
            await end([self._task])

    async def _position(self) -> None:
        """Find the head, and what is recent."""
        async with self._positioning:
            if self._recent is None:
                head = await self._log.last()
                events = await self._log.newest(head, MAX_RECENT)
                self.head = max(head, self.head)
                self._recent = Recent(events[0].number - 1 if events else head, events)

    async def _follow(self) -> None:
        reader = self._store.reader()
        doubtful = False
        try:
            while True:
                try:
                    await self.ready()
                    if doubtful:
                        await self._check_head()
                    doubtful = not await self._read_on(reader)
                    continue
                except StoreUnavailable as outage:
                    logger.warning("The live feed waits for the store: %s", outage.reason)
                except Exception:
                    logger.exception("The live feed tries again")
                doubtful = True
                await asyncio.sleep(PAUSE_SECONDS)
        finally:
            await reader.close()

    async def _check_head(self) -> None:
        """See whether a failover has undone events that were told already; then go on from where the log ends."""
        last = await self._log.last()
        if last < self.head:
            logger.warning("The log ends at %d, before what was told up to %d: a failover lost events", last, self.head)
            self.head = last
            self._recent = Recent(last)
            self._listener.lose()

    async def _read_on(self, reader: Store) -> bool:
        """Read what comes next and pass it on. Tells whether anything came."""
        reply = await reader.run(
            "XREAD",
            "COUNT",
            READ_AT_ONCE,
            "BLOCK",
            int(BLOCK_SECONDS * 1000),
            "STREAMS",
            keys.LOG,
            entry_id(self.head),
        )
        entries = reply[keys.LOG] if reply else []
        events = [event for event in map(decode_entry, entries) if event is not None]
        trimmed, _ = await asyncio.gather(self._log.trimmed(), self._listener.prepare(events))
        if trimmed > self.head:
            self.head = number_of(entries[0][0]) - 1 if entries else trimmed
            self._recent = Recent(self.head)
            self._listener.lose()
        for start in range(0, len(events), PASSED_AT_ONCE):
            if sum(map(self._pass_on, events[start : start + PASSED_AT_ONCE])):
                await self._listener.digest()
        if entries:
            self.head = number_of(entries[-1][0])
        self._log.seen = max(self._log.seen, self.head)
        if entries:
            self._moved.set()
            self._moved = asyncio.Event()
        return bool(entries)

    def _pass_on(self, event: Event) -> int:
        """Move the head and tell the listener, in one step: whoever joins now has either got it or will replay it."""
        if self._recent is not None:
            self._recent.add(event)
        self.head = event.number
        return self._listener.receive(event)
