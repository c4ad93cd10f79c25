"""The worker: reads the log through a consumer group and projects every event.

Several workers share the log and the tasks of long fan-outs. A worker acknowledges an event after it has projected the
event, so another worker projects the events of a worker that crashed. The watermark is below the oldest event that is
not acknowledged and below the oldest post with open fan-out tasks.

An event or task that fails is retried; after five deliveries it becomes a dead letter. While the store is unavailable
the worker waits, and the delivery does not count.

A worker stops at an event whose kind it does not know: a later version has appended the event, and its workers project
it. The stopped worker leaves this event and the later ones to them, and continues after they have projected it.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from functools import partial
from typing import TypeAlias, TypeVar

from redis.exceptions import ResponseError

from graph import keys
from graph.archiver.archiver import Archiver
from graph.archiver.scan import Scan
from graph.errors import OutdatedWorker, StoreUnavailable
from graph.home.fan_out import FanOut, FanOuts
from graph.log.dead_letters import DeadLetters
from graph.log.events import Event, StreamEntry, decode_entry, unknown_kind
from graph.log.log import Log
from graph.log.numbers import entry_id, number_of
from graph.model import EPOCH_MS
from graph.projections.mode import Mode
from graph.projections.projections import Projections
from graph.store.commands import script
from graph.store.store import Store
from graph.tasks import to_the_end
from graph.worker.consumer import GROUP, Consumer, create_groups
from graph.worker.housekeeping import Housekeeping

V = TypeVar("V")
Reader: TypeAlias = Callable[[Store], Awaitable[Sequence[StreamEntry]]]
"""Reads new entries of a stream over a connection that the read may block."""
Handler: TypeAlias = Callable[[Sequence[StreamEntry]], Awaitable[int]]
"""Processes and acknowledges entries of a stream, and returns the watermark."""

EVENTS_PER_BATCH = 100
CONCURRENT_TASKS = 2  # while one task waits for the store, the other prepares its next chunk
LEASE = timedelta(seconds=30)
HOUSEKEEPING_SECONDS = 5.0
RETRY_SECONDS = 0.5
UNKNOWN_SECONDS = 0.5
POLL_SECONDS = 0.05

logger = logging.getLogger("fanline.worker")


class Worker:
    """A consumer of the log and of the tasks of long fan-outs.

    The worker renews its lease on events and tasks while it works on them. It claims those of other workers that have
    not renewed theirs for the duration of `lease`.
    """

    def __init__(
        self,
        store: Store,
        log: Log,
        projections: Projections,
        fan_outs: FanOuts,
        archiver: Archiver,
        scan: Scan,
        housekeeping: Housekeeping,
        dead_letters: DeadLetters,
        *,
        lease: timedelta = LEASE,
    ) -> None:
        self._store = store
        self._log = log
        self._projections = projections
        self._fan_outs = fan_outs
        self._archiver = archiver
        self._scan = scan
        self._housekeeping = housekeeping
        self._pause = min(HOUSEKEEPING_SECONDS, max(POLL_SECONDS, lease.total_seconds()))
        self._unknown: OutdatedWorker | None = None
        self._poll = min(POLL_SECONDS, lease.total_seconds())
        name = secrets.token_hex(8)
        lease_ms = int(lease.total_seconds() * 1000)
        self._events = Consumer(store, dead_letters, keys.LOG, name, batch=EVENTS_PER_BATCH, lease_ms=lease_ms)
        self._tasks = Consumer(
            store, dead_letters, keys.FANOUTS, name, batch=1, lease_ms=lease_ms, open_tasks=keys.OPEN_FANOUTS
        )

    async def run(self) -> None:
        """Project the log as it grows, until cancelled. Retry while the store or the archive is unavailable."""
        readers = [self._store.reader() for _ in range(1 + CONCURRENT_TASKS)]
        loops = [
            self._consume(self._read_events, self._project_entries, readers[0]),
            *(self._consume(partial(self._tasks.read, block=True), self._run_tasks, each) for each in readers[1:]),
            self._maintain(),
            self._archiver.run(),
            self._scan.run(),
        ]
        try:
            async with asyncio.TaskGroup() as group:
                for loop in loops:
                    group.create_task(loop)
        finally:
            await to_the_end(close_all(readers))

    async def _consume(self, read: Reader, handle: Handler, reader: Store) -> None:
        """Process new entries of a stream as they are added; create the consumer group again if it is lost."""
        while True:
            try:
                await create_groups(self._store, self._log)
                while True:
                    await handle(await read(reader))
            except StoreUnavailable as outage:
                logger.warning("The store is unavailable; the worker will retry: %s", outage.reason)
                await asyncio.sleep(RETRY_SECONDS)
            except ResponseError as error:
                if not str(error).startswith(("NOGROUP", "UNBLOCKED")):
                    raise

    async def _maintain(self) -> None:
        """Process entries whose lease has expired, and tidy the log, every few seconds."""
        while True:
            await asyncio.sleep(self._pause)
            try:
                await create_groups(self._store, self._log)
                while events := await self._events.claim(self._first_unknown):
                    await self._project_entries(events)
                while tasks := await self._tasks.claim():
                    await self._run_tasks(tasks)
                await self._acknowledge()
                await self._housekeeping.tidy()
            except StoreUnavailable as outage:
                logger.warning("The store is unavailable; housekeeping will retry: %s", outage.reason)
            except ResponseError as error:
                logger.warning("Housekeeping failed and will be retried: %s", error)

    async def _read_events(self, reader: Store) -> Sequence[StreamEntry]:
        """Read new events. If the worker is stopped at an event, wait first until another worker has projected it."""
        while self._unknown is not None:
            await asyncio.sleep(UNKNOWN_SECONDS)
            await self._acknowledge()
        return await self._events.read(reader, block=True)

    async def drain(self) -> int:
        """Project everything in the log, fan-outs included, and return the watermark.

        Wait for events and tasks that other workers hold, and claim them when their lease has expired. Raises
        OutdatedWorker at an event of an unknown kind, after the events before it and the tasks.
        """
        await create_groups(self._store, self._log)
        while True:
            events = [] if self._unknown else await self._events.read(self._store)
            events = events or await self._events.claim(self._first_unknown)
            watermark = await self._project_entries(events)
            tasks = await self._tasks.read(self._store) or await self._tasks.claim()
            if tasks:
                watermark = await self._run_tasks(tasks)
            if not events and not tasks:
                if self._unknown is not None:
                    raise self._unknown
                if watermark >= await self._log.end():
                    return watermark
                await asyncio.sleep(self._poll)

    async def _project_entries(self, entries: Sequence[StreamEntry]) -> int:
        """Project a batch of events, acknowledge those that succeeded, and return the watermark."""
        entries = await self._release_unknown(entries)
        async with self._events.lease([entry[0] for entry in entries]):
            return await self._acknowledge(events=await self._project(entries))

    async def _release_unknown(self, entries: Sequence[StreamEntry]) -> Sequence[StreamEntry]:
        """Stop at the first event of an unknown kind, release the events from there on, and return those before it."""
        for entry in entries:
            self._stop_at_unknown(entry)
        if self._unknown is None:
            return entries
        first = number_of(self._unknown.entry)
        released = [entry[0] for entry in entries if number_of(entry[0]) >= first]
        if released:
            async with self._events.lease(released):
                await retry_outages(partial(self._events.release, released))
        return [entry for entry in entries if number_of(entry[0]) < first]

    def _stop_at_unknown(self, entry: StreamEntry) -> None:
        kind = unknown_kind(entry)
        if kind is not None and (self._unknown is None or number_of(entry[0]) < number_of(self._unknown.entry)):
            self._unknown = OutdatedWorker(kind, entry[0])
            logger.error("The worker stops: %s", self._unknown)

    @property
    def _first_unknown(self) -> str | None:
        return None if self._unknown is None else self._unknown.entry

    async def _run_tasks(self, entries: Sequence[StreamEntry]) -> int:
        """Run fan-out tasks, acknowledge those that succeeded, and return the watermark."""
        async with self._tasks.lease([entry[0] for entry in entries]):
            done = []
            for entry, words in entries:
                try:
                    if words is not None:
                        task = FanOut(**dict(zip(words[::2], map(int, words[1::2]), strict=True)))
                        await retry_outages(partial(self._fan_outs.push, task))
                    done.append(entry)
                except Exception:
                    logger.exception("Fan-out task %s failed", entry)
            return await self._acknowledge(tasks=done)

    async def _acknowledge(self, events: Sequence[str] = (), tasks: Sequence[str] = ()) -> int:
        """Acknowledge events and tasks, and return the new watermark. One round trip."""
        names = [keys.LOG, keys.WATERMARK, keys.FANOUTS, keys.OPEN_FANOUTS, keys.ARCHIVED]
        call = script("acknowledge").call(names, GROUP, EPOCH_MS, len(events), *events, *tasks)
        [reply] = await retry_outages(lambda: self._store.send([call]))
        watermark = self._log.note_watermark(reply)
        if self._unknown is not None and watermark >= number_of(self._unknown.entry):
            logger.info("Another worker has projected entry %s; this one continues", self._unknown.entry)
            self._unknown = None
        return watermark

    async def _project(self, entries: Sequence[StreamEntry]) -> list[str]:
        """Project a batch of entries, and return the entries to acknowledge. If it fails, project each event alone."""
        events: list[Event] = []
        done: list[str] = []
        for entry in entries:
            event = decode_entry(entry)
            if event is not None:
                events.append(event)
            elif entry[1] is None:
                done.append(entry[0])  # scrubbed: the post was deleted
        try:
            await retry_outages(partial(self._projections.project, events, Mode.WORKER))
            done += [entry_id(event.number) for event in events]
        except Exception:
            logger.exception("Projecting a batch of %d events failed; projecting each event alone", len(events))
            done += await self._project_each(events)
        return done

    async def _project_each(self, events: Sequence[Event]) -> list[str]:
        done = []
        for event in events:
            try:
                await retry_outages(partial(self._projections.project, [event], Mode.WORKER))
                done.append(entry_id(event.number))
            except Exception:
                logger.exception("Projecting event %d failed", event.number)
        return done


async def close_all(stores: Iterable[Store]) -> None:
    """Close stores."""
    for store in stores:
        await store.close()


async def retry_outages(work: Callable[[], Awaitable[V]]) -> V:
    """Return the result of `work`, repeating it while the store is unavailable."""
    while True:
        try:
            return await work()
        except StoreUnavailable as outage:
            logger.warning("The store is unavailable; the worker will retry: %s", outage.reason)
            await asyncio.sleep(RETRY_SECONDS)
