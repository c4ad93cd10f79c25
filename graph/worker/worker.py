"""The worker: reads the log through a consumer group and projects every event.

Several workers share the log and the tasks of long fan-outs. A worker acknowledges an event after it has projected the
event, so another worker projects the events of a worker that crashed. The watermark is below the oldest event that is
not acknowledged and below the oldest post with open fan-out tasks.

An event or task that fails is retried; after five deliveries it becomes a dead letter. While the store is unavailable
the worker waits, and the delivery does not count.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TypeAlias, TypeVar

from redis.exceptions import ResponseError

from graph import keys
from graph.archive.archiver import Archiver
from graph.errors import StoreUnavailable
from graph.home.fan_out import FanOut, FanOuts
from graph.log.events import Event, decode_entry
from graph.log.log import Log
from graph.log.numbers import entry_id, number_of
from graph.model import EPOCH_MS, time_of
from graph.projections.mode import Mode
from graph.projections.projections import Projections
from graph.store.commands import script
from graph.store.store import Store
from graph.worker.consumer import GROUP, Consumer, Entry, create_groups
from graph.worker.dead_letters import DeadLetters
from graph.worker.housekeeping import Housekeeping

V = TypeVar("V")
Handler: TypeAlias = Callable[[Sequence[Entry]], Awaitable[int]]
"""Processes and acknowledges entries of a stream, and returns the watermark."""

EVENTS_PER_BATCH = 100
CONCURRENT_TASKS = 2  # while one task waits for the store, the other prepares its next chunk
LEASE = timedelta(seconds=30)
HOUSEKEEPING_SECONDS = 5.0
RETRY_SECONDS = 0.5
POLL_SECONDS = 0.05

logger = logging.getLogger("fanline.worker")


@dataclass(frozen=True, slots=True)
class Backlog:
    """Unfinished work: the time of the oldest unprojected event, or None, and the numbers of open items."""

    oldest: datetime | None
    tasks: int
    dead: int
    archivable: int
    deleted: int


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
        archiver: Archiver | None,
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
        self._housekeeping = housekeeping
        self._pause = min(HOUSEKEEPING_SECONDS, max(POLL_SECONDS, lease.total_seconds()))
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
            self._consume(self._events, self._project_entries, readers[0]),
            *(self._consume(self._tasks, self._run_tasks, reader) for reader in readers[1:]),
            self._maintain(),
        ]
        if self._archiver is not None:
            loops.append(self._archiver.run())
        try:
            async with asyncio.TaskGroup() as group:
                for loop in loops:
                    group.create_task(loop)
        finally:
            for reader in readers:
                await reader.close()

    async def _consume(self, consumer: Consumer, handle: Handler, reader: Store) -> None:
        """Process new entries of a stream as they are added; create the consumer group again if it is lost."""
        while True:
            try:
                await create_groups(self._store, self._log)
                while True:
                    await handle(await consumer.read(reader, block=True))
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
                while events := await self._events.claim():
                    await self._project_entries(events)
                while tasks := await self._tasks.claim():
                    await self._run_tasks(tasks)
                await self._acknowledge()
                await self._housekeeping.tidy()
            except StoreUnavailable as outage:
                logger.warning("The store is unavailable; housekeeping will retry: %s", outage.reason)
            except ResponseError as error:
                logger.warning("Housekeeping failed and will be retried: %s", error)

    async def drain(self) -> int:
        """Project everything in the log, fan-outs included, and return the watermark.

        Wait for events and tasks that other workers hold, and claim them when their lease has expired.
        """
        await create_groups(self._store, self._log)
        while True:
            events = await self._events.read(self._store) or await self._events.claim()
            watermark = await self._project_entries(events)
            tasks = await self._tasks.read(self._store) or await self._tasks.claim()
            if tasks:
                watermark = await self._run_tasks(tasks)
            if not events and not tasks:
                if watermark >= await self._log.last():
                    return watermark
                await asyncio.sleep(self._poll)

    async def _project_entries(self, entries: Sequence[Entry]) -> int:
        """Project a batch of events, acknowledge those that succeeded, and return the watermark."""
        async with self._events.lease([entry[0] for entry in entries]):
            return await self._acknowledge(events=await self._project(entries))

    async def _run_tasks(self, entries: Sequence[Entry]) -> int:
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
        names = [keys.LOG, keys.WATERMARK, keys.FANOUTS, keys.OPEN_FANOUTS]
        call = script("acknowledge").call(names, GROUP, EPOCH_MS, len(events), *events, *tasks)
        [watermark] = await retry_outages(lambda: self._store.send([call]))
        self._log.known_watermark = max(self._log.known_watermark, int(watermark))
        return int(watermark)

    async def _project(self, entries: Sequence[Entry]) -> list[str]:
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

    async def backlog(self) -> Backlog:
        """Return the unfinished work. Two round trips."""
        watermark = await self._log.watermark()
        [first, *counts] = await self._store.read(
            [
                ("XRANGE", keys.LOG, f"({entry_id(watermark)}", "+", "COUNT", 1),
                ("ZCARD", keys.OPEN_FANOUTS),
                ("XLEN", keys.DEAD),
                ("ZCARD", keys.ARCHIVABLE),
                ("ZCARD", keys.DELETED),
            ]
        )
        return Backlog(time_of(number_of(first[0][0])) if first else None, *counts)


async def retry_outages(work: Callable[[], Awaitable[V]]) -> V:
    """Return the result of `work`, repeating it while the store is unavailable."""
    while True:
        try:
            return await work()
        except StoreUnavailable as outage:
            logger.warning("The store is unavailable; the worker will retry: %s", outage.reason)
            await asyncio.sleep(RETRY_SECONDS)
