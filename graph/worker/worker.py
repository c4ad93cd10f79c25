"""The worker: reads the log through a consumer group and projects every event.

Several workers share the log and the tasks of long fan-outs. A worker acknowledges an event after projecting it, so
another worker projects the events of a worker that crashed. The watermark is below the oldest event that is not
acknowledged and below the oldest post with open fan-out tasks.

An event or task that fails is retried; after five deliveries it becomes a dead letter. One that is interrupted by an
outage of a shard is retried in the background with exponential backoff (`graph.worker.retries`), which does not count
as a delivery. The other events and tasks continue.

A worker stops at an event whose kind it does not know: a later version has appended the event, and its workers project
it. The stopped worker leaves that event and all later ones to the newer workers, and continues once they have projected
that event.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from functools import partial
from typing import TypeAlias

from redis.exceptions import ResponseError

from graph import keys
from graph.archiver.archiver import Archiver
from graph.archiver.indexing import Indexing
from graph.archiver.moves import Moves
from graph.archiver.scan import Scan
from graph.binding import Binding
from graph.erasure.eraser import Eraser
from graph.errors import OutdatedWorker, StoreTooNew, StoreUnavailable
from graph.home.fan_out import FanOuts
from graph.home.pacing import Pace, Pacer
from graph.log.dead_letters import DeadLetters
from graph.log.encoding import StreamEntry, decode_entry, unknown_kind
from graph.log.events import Event
from graph.log.log import Log
from graph.log.losses import Losses
from graph.log.numbers import entry_id, number_of
from graph.model import EPOCH_MS
from graph.projections.mode import Mode
from graph.projections.projections import Projections
from graph.store.commands import script
from graph.store.store import Store
from graph.tasks import to_the_end
from graph.worker.consumer import GROUP, Consumer, create_groups
from graph.worker.conversion import Conversion
from graph.worker.healing import Healing
from graph.worker.housekeeping import Housekeeping
from graph.worker.recovery import Recovery
from graph.worker.retries import READ_AGAIN_SECONDS, Backoff, LeasePace, Retries, Run, Work, retry_outages, run_each

Reader: TypeAlias = Callable[[Store], Awaitable[Sequence[StreamEntry]]]
"""Reads new entries of a stream over a connection that the read may block."""
Handler: TypeAlias = Callable[[Sequence[StreamEntry]], Awaitable[int]]
"""Processes and acknowledges entries of a stream, and returns the watermark."""

EVENTS_PER_BATCH = 100
CONCURRENT_TASKS = 2  # while one task waits for the store, the other prepares its next chunk
MOST_EVENTS = 2000
"""A worker that retries this number of events takes no others: it holds them in memory and renews their leases."""
MOST_TASKS = 20
LEASE = timedelta(seconds=4)
CLAIM_SECONDS = 0.5
"""How often a worker looks for expired leases: the events of a worker that died wait for less than five seconds."""
OUTAGE_SECONDS = 1.0
"""The time limit for projecting an event while a shard does not answer. Slower events are retried without the limit."""
HOUSEKEEPING_SECONDS = 5.0
UNKNOWN_SECONDS = 0.5
POLL_SECONDS = 0.05

logger = logging.getLogger("fanline.worker")


class Worker:
    """A consumer of the log and of the tasks of long fan-outs.

    The worker renews its lease on events and tasks while it makes progress with them. It claims the events
    and tasks of other workers that have not renewed their leases for the duration of `lease`.
    """

    def __init__(
        self,
        store: Store,
        log: Log,
        binding: Binding,
        projections: Projections,
        fan_outs: FanOuts,
        archiver: Archiver,
        scan: Scan,
        indexing: Indexing,
        moves: Moves,
        eraser: Eraser,
        housekeeping: Housekeeping,
        dead_letters: DeadLetters,
        losses: Losses,
        healing: Healing,
        conversion: Conversion,
        *,
        lease: timedelta = LEASE,
    ) -> None:
        self._store = store
        self._log = log
        self._binding = binding
        self._projections = projections
        self._fan_outs = fan_outs
        self._archiver = archiver
        self._scan = scan
        self._indexing = indexing
        self._moves = moves
        self._eraser = eraser
        self._housekeeping = housekeeping
        self._dead_letters = dead_letters
        self._losses = losses
        self._healing = healing
        self._conversion = conversion
        self._pause = min(HOUSEKEEPING_SECONDS, max(POLL_SECONDS, lease.total_seconds()))
        self._unknown: OutdatedWorker | None = None
        self._poll = min(POLL_SECONDS, lease.total_seconds())
        self._claim_pause = min(CLAIM_SECONDS, max(POLL_SECONDS, lease.total_seconds()))
        name = secrets.token_hex(8)
        lease_ms = int(lease.total_seconds() * 1000)
        self._events = Consumer(store, dead_letters, keys.LOG, name, batch=EVENTS_PER_BATCH, lease_ms=lease_ms)
        self._tasks = Consumer(
            store, dead_letters, keys.FANOUTS, name, batch=1, lease_ms=lease_ms, open_tasks=keys.OPEN_FANOUTS
        )
        self._pacer = Pacer(store)
        self._event_retries = Retries(
            self._events, self._pacer, lambda done: self._acknowledge(events=done), MOST_EVENTS
        )
        self._task_retries = Retries(self._tasks, self._pacer, lambda done: self._acknowledge(tasks=done), MOST_TASKS)

    async def run(self) -> None:
        """Project the log as it grows, until cancelled. Retry while the store or the archive is unavailable.

        Raises StoreTooNew a few seconds after a later version has changed the keys of the store.
        """
        readers = [self._store.reader() for _ in range(1 + CONCURRENT_TASKS)]
        loops = [
            self._consume(self._read_events, self._project_entries, readers[0]),
            *(self._consume(self._read_tasks, self._run_tasks, each) for each in readers[1:]),
            self._take_over(self._claim_events, self._project_entries),
            self._take_over(self._claim_tasks, self._run_tasks),
            self._maintain(),
            Recovery(self._store, self._housekeeping.retention, self._losses).run(),
            self._healing.run(),
            self._conversion.run(),
            self._archiver.run(),
            self._scan.run(),
            self._indexing.run(),
            self._moves.run(),
            self._eraser.run(),
        ]
        refusal: Exception | None = None  # before Python 3.11.4, an exception raised in `except*` becomes a group
        try:
            async with asyncio.TaskGroup() as group:
                for loop in loops:
                    group.create_task(loop)
        except* StoreTooNew as stop:
            refusal = stop.exceptions[0]
        finally:
            await to_the_end(self._stop(readers))
        if refusal:
            raise refusal

    async def _stop(self, readers: Iterable[Store]) -> None:
        """Give up all entries, so that other workers can claim them at once."""
        await self._close()
        await close_all(readers)
        await asyncio.gather(self._events.close(), self._tasks.close())

    async def _close(self) -> None:
        await self._event_retries.close()
        await self._task_retries.close()

    async def _consume(self, read: Reader, handle: Handler, reader: Store) -> None:
        """Process new entries of a stream as they are added; create the consumer group again if it is lost."""
        backoff = Backoff(READ_AGAIN_SECONDS)
        while True:
            try:
                await create_groups(self._store)
                while True:
                    entries = await read(reader)
                    backoff = Backoff(READ_AGAIN_SECONDS)
                    await handle(entries)
            except StoreUnavailable as outage:
                logger.warning("The store is unavailable; the worker will retry: %s", outage.reason)
                await backoff.sleep()
            except ResponseError as error:
                if not str(error).startswith(("NOGROUP", "UNBLOCKED")):
                    raise

    async def _take_over(self, claim: Callable[[], Awaitable[Sequence[StreamEntry]]], handle: Handler) -> None:
        """Process entries whose lease has expired."""
        while True:
            await asyncio.sleep(self._claim_pause)
            try:
                while entries := await claim():
                    await handle(entries)
            except StoreUnavailable as outage:
                logger.warning("The store is unavailable; expired leases will be claimed later: %s", outage.reason)
            except ResponseError as error:
                if not str(error).startswith("NOGROUP"):  # the group will be created
                    raise

    async def _maintain(self) -> None:
        """Advance the watermark and tidy the log, every few seconds. Raises StoreTooNew."""
        while True:
            await asyncio.sleep(self._pause)
            try:
                await self._binding.check_format()
                await create_groups(self._store)
                await self._acknowledge()
                await self._housekeeping.tidy()
                await self._dead_letters.trim()
            except StoreUnavailable as outage:
                logger.warning("The store is unavailable; housekeeping will retry: %s", outage.reason)
            except ResponseError as error:
                logger.warning("Housekeeping failed and will be retried: %s", error)

    async def _read_events(self, reader: Store) -> Sequence[StreamEntry]:
        """Read new events. If the worker is stopped at an event, wait first until another worker has projected it."""
        while self._unknown is not None:
            await asyncio.sleep(UNKNOWN_SECONDS)
            await self._acknowledge()
        await self._event_retries.room()
        return await self._events.read(reader, block=True)

    async def _read_tasks(self, reader: Store) -> Sequence[StreamEntry]:
        await self._task_retries.room()
        return await self._tasks.read(reader, block=True)

    async def _claim_events(self) -> Sequence[StreamEntry]:
        return [] if self._event_retries.is_full else await self._events.claim(self._first_unknown)

    async def _claim_tasks(self) -> Sequence[StreamEntry]:
        return [] if self._task_retries.is_full else await self._tasks.claim()

    async def drain(self) -> int:
        """Project everything in the log, fan-outs included, and return the watermark.

        Wait for events and tasks that other workers hold, and claim them when their lease has expired. Raises
        OutdatedWorker at an event of an unknown kind, once all tasks and the events before it are done.
        """
        await create_groups(self._store)
        try:
            return await self._drain()
        finally:
            await to_the_end(self._close())

    async def _drain(self) -> int:
        while True:
            stops = self._unknown or self._event_retries.is_full
            events = ([] if stops else await self._events.read(self._store)) or await self._claim_events()
            watermark = await self._project_entries(events)
            stops = self._task_retries.is_full
            tasks = ([] if stops else await self._tasks.read(self._store)) or await self._claim_tasks()
            if tasks:
                watermark = await self._run_tasks(tasks)
            if not events and not tasks:
                if self._unknown is not None and not self._event_retries and not self._task_retries:
                    raise self._unknown
                if watermark >= await self._log.end():
                    return watermark
                await asyncio.sleep(self._poll)

    async def _project_entries(self, entries: Sequence[StreamEntry]) -> int:
        """Project a batch of events, acknowledge those that succeeded, and return the watermark.

        Events interrupted by an outage are retried in the background.
        """
        entries = await self._release_unknown(entries)
        events = [event for event in map(decode_entry, entries) if event is not None]
        scrubbed = [entry for entry, words in entries if words is None]  # the post was deleted
        if events:
            self._losses.receive(events[-1].number)
        async with self._events.lease([entry[0] for entry in entries]) as lease:
            done, interrupted = await self._project(events, LeasePace(self._pacer, lease))
            watermark = await self._acknowledge(events=[*scrubbed, *done])
            await self._event_retries.add(interrupted)
        return watermark

    async def _project(self, events: Sequence[Event], pace: Pace) -> tuple[list[str], list[Work]]:
        """Project events, all at once if possible, otherwise one by one.

        Return the entries that are done, and the work items that an outage interrupted.
        """
        works = [
            Work(entry_id(event.number), partial(self._projections.project, [event], Mode.WORKER)) for event in events
        ]
        meets_outage = len(self._event_retries) > 0
        if not meets_outage:
            try:
                await self._projections.project(events, Mode.WORKER, pace)
                return [work.entry for work in works], []
            except StoreUnavailable as outage:
                meets_outage = True
                logger.warning("A part of the store is unavailable; its events will be retried: %s", outage.reason)
            except Exception:
                logger.exception(
                    "Projecting a batch of %d events failed; projecting each event individually", len(events)
                )
        return await run_each(works, pace, OUTAGE_SECONDS if meets_outage else None)

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
            logger.error("The worker is stopping: %s", self._unknown)

    @property
    def _first_unknown(self) -> str | None:
        return None if self._unknown is None else self._unknown.entry

    async def _run_tasks(self, entries: Sequence[StreamEntry]) -> int:
        """Run fan-out tasks, acknowledge those that succeeded, and return the watermark."""
        gone = [entry for entry, words in entries if words is None]
        works = [self._work_on(entry, words) for entry, words in entries if words is not None]
        meets_outage = len(self._event_retries) + len(self._task_retries) > 0
        async with self._tasks.lease([entry[0] for entry in entries]) as lease:
            done, interrupted = await run_each(works, LeasePace(self._pacer, lease, meets_outage=meets_outage))
            watermark = await self._acknowledge(tasks=[*gone, *done])
            await self._task_retries.add(interrupted)
        return watermark

    def _work_on(self, entry: str, words: Sequence[str]) -> Work:
        """Return the work item of a task, which keeps its progress from one attempt to the next."""
        work: Run | None = None

        async def run(pace: Pace) -> None:
            nonlocal work
            work = work or self._fan_outs.work(entry, words, GROUP)
            await work(pace)

        return Work(entry, run)

    async def _acknowledge(self, events: Sequence[str] = (), tasks: Sequence[str] = ()) -> int:
        """Acknowledge events and tasks, and return the new watermark. One round trip."""
        names = [keys.LOG, keys.WATERMARK, keys.FANOUTS, keys.OPEN_FANOUTS, keys.ARCHIVED, keys.ADDED_FANOUTS]
        call = script("acknowledge").call(names, GROUP, EPOCH_MS, len(events), *events, *tasks)
        [reply] = await retry_outages(lambda: self._store.send([call]))
        watermark = self._log.note_watermark(reply)
        if self._unknown is not None and watermark >= number_of(self._unknown.entry):
            logger.info("Another worker has projected entry %s; this one continues", self._unknown.entry)
            self._unknown = None
        return watermark


async def close_all(stores: Iterable[Store]) -> None:
    """Close stores."""
    for store in stores:
        await store.close()
