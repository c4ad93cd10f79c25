"""The worker: reads the log through a consumer group and projects every event.

Events are acknowledged last, so a worker that dies leaves its events to the others; the watermark follows the
oldest event that is not acknowledged. Several workers share the log, and the tasks into which a long fan-out is cut:
the mark waits for the last of them. What cannot be projected after five deliveries goes to the dead letters; an
outage of the store does not count as a delivery.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeAlias, TypeVar

from redis.exceptions import ResponseError

from graph import keys
from graph.archive.archiver import Archiver
from graph.errors import StoreUnavailable
from graph.home.fan_out import FanOut, FanOuts
from graph.log.events import Event, PostDeleted
from graph.log.log import Log, entry_id, number_of, readable
from graph.model import EPOCH_MS, number_at, time_of
from graph.projections.mode import Mode
from graph.projections.projections import Projections
from graph.store.commands import script
from graph.store.store import Store
from graph.worker.consumer import GROUP, Consumer, Entry

V = TypeVar("V")
Process: TypeAlias = Callable[[Sequence[Entry]], Awaitable[int]]
"""Work on entries of a stream, acknowledge those that are done, and give the watermark."""

FACTS_AT_ONCE = 100
FAN_OUTS_AT_ONCE = 2  # while one waits for the store, the other prepares its next chunk
CLAIM_AFTER = timedelta(seconds=30)
HOUSEKEEPING_SECONDS = 5.0
PAUSE_SECONDS = 0.5

logger = logging.getLogger("fanline.worker")


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits: since when the oldest event does, None if none does, and how many of each kind are not done."""

    oldest: datetime | None
    tasks: int
    dead: int
    archivable: int
    deleted: int


class Worker:
    """One consumer of the log and of the tasks of long fan-outs.

    `claim_after` is how long an event or task may wait for another worker's acknowledgement before this one takes it
    over; what is under way is kept from that by a heartbeat.
    """

    def __init__(
        self,
        store: Store,
        log: Log,
        projections: Projections,
        fan_outs: FanOuts,
        archiver: Archiver | None,
        retention: timedelta,
        *,
        claim_after: timedelta = CLAIM_AFTER,
    ) -> None:
        self._store = store
        self._log = log
        self._projections = projections
        self._fan_outs = fan_outs
        self._archiver = archiver
        self._retention = retention
        self._pause = min(HOUSEKEEPING_SECONDS, max(0.05, claim_after.total_seconds()))
        self._wait = min(0.05, claim_after.total_seconds())
        name = secrets.token_hex(8)
        claim_ms = int(claim_after.total_seconds() * 1000)
        self._events = Consumer(store, keys.LOG, name, batch=FACTS_AT_ONCE, claim_ms=claim_ms)
        self._tasks = Consumer(store, keys.FANOUTS, name, batch=1, claim_ms=claim_ms, tasks=keys.OPEN_FANOUTS)

    async def run(self) -> None:
        """Project the log as it grows, until cancelled. Survives outages of the store and of the archive."""
        readers = [self._store.reader() for _ in range(1 + FAN_OUTS_AT_ONCE)]
        tasks = [
            self._follow(self._events, self._process, readers[0]),
            *(self._follow(self._tasks, self._fan_out, reader) for reader in readers[1:]),
            self._keep_house(),
        ]
        if self._archiver is not None:
            tasks.append(self._archiver.run())
        try:
            async with asyncio.TaskGroup() as group:
                for task in tasks:
                    group.create_task(task)
        finally:
            for reader in readers:
                await reader.close()

    async def _follow(self, consumer: Consumer, process: Process, reader: Store) -> None:
        while True:
            try:
                await self._join()
                while True:
                    await process(await consumer.take(reader, block=True))
            except StoreUnavailable as outage:
                logger.warning("The worker waits for the store: %s", outage.reason)
                await asyncio.sleep(PAUSE_SECONDS)
            except ResponseError as error:
                if not str(error).startswith(("NOGROUP", "UNBLOCKED")):
                    raise

    async def _keep_house(self) -> None:
        """Take over what dead workers left, and trim the log, on a timer."""
        while True:
            await asyncio.sleep(self._pause)
            try:
                while events := await self._events.claim():
                    await self._process(events)
                while tasks := await self._tasks.claim():
                    await self._fan_out(tasks)
                await self._acknowledge()
                await self.tidy()
            except StoreUnavailable as outage:
                logger.warning("Housekeeping waits for the store: %s", outage.reason)
            except ResponseError as error:
                logger.warning("Housekeeping waits: %s", error)

    async def drain(self) -> int:
        """Project everything in the log, fan-outs included, and give the watermark.

        Waits for what another worker holds, and takes it over when it has waited long enough.
        """
        await self._join()
        while True:
            events = await self._events.take(self._store) or await self._events.claim()
            mark = await self._process(events)
            tasks = await self._tasks.take(self._store) or await self._tasks.claim()
            if tasks:
                mark = await self._fan_out(tasks)
            if not events and not tasks:
                if mark >= await self._log.last():
                    return mark
                await asyncio.sleep(self._wait)

    async def pass_over(self, upto: int) -> None:
        """Count the events up to this number as projected, because an import has done it. One round trip."""
        pass_over = script("pass_over").call([keys.LOG, keys.WATERMARK], GROUP, upto, entry_id(upto))
        await self._store.send([pass_over])

    async def _join(self) -> None:
        """Create the consumer groups, that of the log where projections stand, unless there are some."""
        await self._events.join(entry_id(await self._log.watermark()))
        await self._tasks.join("0")

    async def _process(self, entries: Sequence[Entry]) -> int:
        """Project a batch of events, then acknowledge what was projected; give the watermark."""
        async with self._events.holding([entry[0] for entry in entries]):
            return await self._acknowledge(events=await self._project(entries))

    async def _fan_out(self, entries: Sequence[Entry]) -> int:
        """Carry tasks of fan-outs out, then acknowledge them; give the watermark."""
        async with self._tasks.holding([entry[0] for entry in entries]):
            done = []
            for entry, words in entries:
                try:
                    if words is not None:
                        task = FanOut(**dict(zip(words[::2], map(int, words[1::2]), strict=True)))
                        await with_patience(partial(self._fan_outs.push, task))
                    done.append(entry)
                except Exception:
                    logger.exception("Task %s of a fan-out failed", entry)
            return await self._acknowledge(tasks=done)

    async def _acknowledge(self, events: Sequence[str] = (), tasks: Sequence[str] = ()) -> int:
        """Acknowledge what is done, and advance the watermark. One round trip."""
        names = [keys.LOG, keys.WATERMARK, keys.FANOUTS, keys.OPEN_FANOUTS]
        call = script("acknowledge").call(names, GROUP, EPOCH_MS, len(events), *events, *tasks)
        [mark] = await with_patience(lambda: self._store.send([call]))
        self._log.known_watermark = max(self._log.known_watermark, int(mark))
        return int(mark)

    async def _project(self, entries: Sequence[Entry]) -> list[str]:
        """Project a batch; if it fails, project its events one by one and leave those that fail for later."""
        events: list[Event] = []
        done: list[str] = []
        for entry in entries:
            event = readable(entry)
            if event is not None:
                events.append(event)
            elif entry[1] is None:
                done.append(entry[0])  # removed from the log since: its post was deleted
        try:
            await with_patience(lambda: self._projections.project(events, Mode.WORKER))
            done += [entry_id(event.number) for event in events]
        except Exception:
            logger.exception("A batch of %d events failed; trying them one by one", len(events))
            done += await self._one_by_one(events)
        return done

    async def _one_by_one(self, events: Sequence[Event]) -> list[str]:
        done = []
        for event in events:
            try:
                await with_patience(partial(self._projections.project, [event], Mode.WORKER))
                done.append(entry_id(event.number))
            except Exception:
                logger.exception("Event %d could not be projected", event.number)
        return done

    async def dead_letters(self, count: int = 100) -> list[dict[str, str]]:
        """List events that could not be projected, oldest first, each with its entry and the reason."""
        entries = await self._store.run("XRANGE", keys.DEAD, "-", "+", "COUNT", count)
        return [dict(zip(fields[::2], fields[1::2], strict=True)) for _, fields in entries]

    async def backlog(self) -> Backlog:
        """Tell what waits to be done. Two round trips."""
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

    async def tidy(self) -> None:
        """Remove deleted posts' texts from the log, then what is older than the retention. Never above the mark.

        Workers of the past, silent for an hour and holding nothing, are forgotten too.
        """
        await self._scrub()
        await self._join()
        for consumer in (self._events, self._tasks):
            await consumer.forget_silent()
        oldest = number_at(datetime.now(UTC) - self._retention)
        await self._store.send(
            [script("trim_log").call([keys.LOG, keys.WATERMARK, keys.TRIMMED], max(0, oldest), EPOCH_MS)]
        )

    async def _scrub_dead_letters(self, deleted: set[str]) -> None:
        letters = await self._store.run("XRANGE", keys.DEAD, "-", "+")
        found = [letter for letter, fields in letters if fields[1] in deleted]
        if found:
            await self._store.run("XDEL", keys.DEAD, *found)

    async def _scrub(self) -> None:
        """Remove the PostPublished events of posts whose deletion is projected."""
        watermark = await self._log.watermark()
        start = int(await self._store.run("GET", keys.SCRUBBED) or 0)
        if start >= watermark:
            return
        texts = [
            entry_id(event.body.post)
            async for event in self._log.replay(start, watermark)
            if isinstance(event.body, PostDeleted)
        ]
        if texts:
            await self._store.run("XDEL", keys.LOG, *texts)
            await self._scrub_dead_letters(set(texts))
        await self._store.run("SET", keys.SCRUBBED, watermark)


async def with_patience(work: Callable[[], Awaitable[V]]) -> V:
    """Do something; while the store is away, wait and do it again."""
    while True:
        try:
            return await work()
        except StoreUnavailable as outage:
            logger.warning("The worker waits for the store: %s", outage.reason)
            await asyncio.sleep(PAUSE_SECONDS)
