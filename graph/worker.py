"""The worker: reads the log through a consumer group and projects every fact.

Facts are acknowledged last, so a worker that dies leaves its facts to the others; the drained mark follows the
oldest fact that is not acknowledged. Several workers share the log. What cannot be projected after five deliveries
goes to the dead letters; an outage of the store does not count as a delivery.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from redis.exceptions import ResponseError

from graph import keys
from graph.errors import StoreUnavailable
from graph.facts import Fact, PostDeleted
from graph.log import Log, entry_id, number_of, readable
from graph.model import EPOCH_MS, number_at
from graph.projections import Projections
from graph.store import BLOCK_SECONDS, Store, script
from graph.tasks import end

V = TypeVar("V")

GROUP = "projections"
BATCH = 100
MAX_DELIVERIES = 5
CLAIM_AFTER = timedelta(seconds=30)
CONSUMERS_LIVE_MS = 3_600_000
HOUSEKEEPING_SECONDS = 5.0
PAUSE_SECONDS = 0.5

logger = logging.getLogger("fanline.worker")


class Worker:
    """One consumer of the log.

    `claim_after` is how long a fact may wait for another worker's acknowledgement before this one takes it over;
    a batch under way is kept from that by a heartbeat.
    """

    def __init__(
        self,
        store: Store,
        log: Log,
        projections: Projections,
        retention: timedelta,
        *,
        claim_after: timedelta = CLAIM_AFTER,
    ) -> None:
        self._store = store
        self._log = log
        self._projections = projections
        self._retention = retention
        self._claim_ms = int(claim_after.total_seconds() * 1000)
        self._name = secrets.token_hex(8)

    async def run(self) -> None:
        """Project the log as it grows, until cancelled. Survives outages of the store."""
        reader = self._store.reader()
        tasks = (self._follow_log(reader), self._keep_house())
        try:
            async with asyncio.TaskGroup() as group:
                for task in tasks:
                    group.create_task(task)
        finally:
            await reader.close()

    async def _follow_log(self, reader: Store) -> None:
        while True:
            try:
                await self._ensure_group()
                while True:
                    await self._process(await self._read_new(reader, block=True))
            except StoreUnavailable as outage:
                logger.warning("The worker waits for the store: %s", outage.reason)
                await asyncio.sleep(PAUSE_SECONDS)
            except ResponseError as error:
                if not str(error).startswith(("NOGROUP", "UNBLOCKED")):
                    raise

    async def _keep_house(self) -> None:
        """Take over what dead workers left, and trim the log, on a timer."""
        while True:
            await asyncio.sleep(min(HOUSEKEEPING_SECONDS, max(0.05, self._claim_ms / 1000)))
            try:
                while entries := await self._claim():
                    await self._process(entries)
                await self._process([])
                await self.tidy()
            except StoreUnavailable as outage:
                logger.warning("Housekeeping waits for the store: %s", outage.reason)
            except ResponseError as error:
                logger.warning("Housekeeping waits: %s", error)

    async def drain(self) -> int:
        """Project everything in the log and give the drained mark.

        Waits for facts that another worker holds, and takes them over when they have waited long enough.
        """
        await self._ensure_group()
        while True:
            entries = await self._read_new(self._store, block=False) or await self._claim()
            mark = await self._process(entries)
            if not entries:
                if mark >= await self._log.last():
                    return mark
                await asyncio.sleep(min(0.05, max(0.001, self._claim_ms / 1000)))

    async def pass_over(self, upto: int) -> None:
        """Count the facts up to this number as projected, because an import has done it. One round trip."""
        pass_over = script("pass_over").call([keys.LOG, keys.DRAINED], GROUP, upto, entry_id(upto))
        await self._store.send([pass_over])

    async def _ensure_group(self) -> None:
        """Create the consumer group where projections stand, unless there is one."""
        try:
            drained = await self._log.drained()
            await self._store.run("XGROUP", "CREATE", keys.LOG, GROUP, entry_id(drained), "MKSTREAM")
        except ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise

    async def _read_new(self, store: Store, *, block: bool) -> list[Any]:
        waiting = ("BLOCK", int(BLOCK_SECONDS * 1000)) if block else ()
        reply = await store.run(
            "XREADGROUP", "GROUP", GROUP, self._name, "COUNT", BATCH, *waiting, "STREAMS", keys.LOG, ">"
        )
        return list(reply[keys.LOG]) if reply else []

    async def _claim(self) -> list[Any]:
        """Take over facts that were delivered long ago; those delivered too often become dead letters.

        On its last delivery a fact is alone, so that sound ones are not buried with one that kills its worker.
        """
        rows = await self._store.run("XPENDING", keys.LOG, GROUP, "IDLE", self._claim_ms, "-", "+", BATCH)
        claimable, last_chance = [], []
        for entry, _, _, deliveries in rows:
            if deliveries >= MAX_DELIVERIES:
                await self._bury(entry, f"Not projected after {deliveries} deliveries.")
            elif deliveries == MAX_DELIVERIES - 1:
                last_chance.append(entry)
            else:
                claimable.append(entry)
        chosen = claimable or last_chance[:1]
        if not chosen:
            return []
        claimed = await self._store.run("XCLAIM", keys.LOG, GROUP, self._name, self._claim_ms, *chosen)
        return [entry for entry in claimed if entry and entry[0]]

    async def _process(self, entries: Sequence[Any]) -> int:
        """Project a batch, then acknowledge what was projected; give the drained mark."""
        async with self._kept([entry[0] for entry in entries]):
            done = await self._project(entries)
            acknowledge = script("acknowledge").call([keys.LOG, keys.DRAINED], GROUP, EPOCH_MS, *done)
            [mark] = await with_patience(lambda: self._store.send([acknowledge]))
        self._log.known_drained = max(self._log.known_drained, int(mark))
        return int(mark)

    async def _project(self, entries: Sequence[Any]) -> list[str]:
        """Project a batch; if it fails, project its facts one by one and leave those that fail for later."""
        facts: list[Fact] = []
        done: list[str] = []
        for entry in entries:
            fact = readable(entry)
            if fact is not None:
                facts.append(fact)
            elif entry[1] is None:
                done.append(entry[0])  # removed from the log since: its post was deleted
        try:
            await with_patience(lambda: self._projections.project(facts, whole=True))
            done += [entry_id(fact.number) for fact in facts]
        except Exception:
            logger.exception("A batch of %d facts failed; trying them one by one", len(facts))
            done += await self._one_by_one(facts)
        return done

    async def _one_by_one(self, facts: Sequence[Fact]) -> list[str]:
        done = []
        for fact in facts:
            try:
                await with_patience(partial(self._projections.project, [fact], whole=True))
                done.append(entry_id(fact.number))
            except Exception:
                logger.exception("Fact %d could not be projected", fact.number)
        return done

    @asynccontextmanager
    async def _kept(self, entries: Sequence[str]) -> AsyncIterator[None]:
        """Keep facts from being taken over by other workers while they are worked on."""
        beating = [asyncio.create_task(self._beat(entries))] if entries and self._claim_ms else []
        try:
            yield
        finally:
            await end(beating)

    async def _beat(self, entries: Sequence[str]) -> None:
        """Tell the group now and then that these facts are being worked on."""
        while True:
            await asyncio.sleep(self._claim_ms / 3000)
            try:
                await self._store.run("XCLAIM", keys.LOG, GROUP, self._name, 0, *entries, "JUSTID")
            except StoreUnavailable:
                continue

    async def _bury(self, entry: str, reason: str) -> None:
        logger.error("Fact %s goes to the dead letters: %s", number_of(entry), reason)
        await self._store.send([script("bury_fact").call([keys.LOG, keys.DEAD], GROUP, entry, reason)])

    async def dead_letters(self, count: int = 100) -> list[dict[str, str]]:
        """List facts that could not be projected, oldest first, each with its entry and the reason."""
        entries = await self._store.run("XRANGE", keys.DEAD, "-", "+", "COUNT", count)
        return [dict(zip(fields[::2], fields[1::2], strict=True)) for _, fields in entries]

    async def tidy(self) -> None:
        """Remove deleted posts' texts from the log, then what is older than the retention. Never above the mark.

        Workers of the past, silent for an hour and holding nothing, are forgotten too.
        """
        await self._scrub()
        await self._ensure_group()
        await self._store.send([script("forget_consumers").call([keys.LOG], GROUP, CONSUMERS_LIVE_MS)])
        oldest = number_at(datetime.now(UTC) - self._retention)
        await self._store.send(
            [script("trim_log").call([keys.LOG, keys.DRAINED, keys.TRIMMED], max(0, oldest), EPOCH_MS)]
        )

    async def _scrub_dead_letters(self, deleted: set[str]) -> None:
        letters = await self._store.run("XRANGE", keys.DEAD, "-", "+")
        found = [letter for letter, fields in letters if fields[1] in deleted]
        if found:
            await self._store.run("XDEL", keys.DEAD, *found)

    async def _scrub(self) -> None:
        """Remove the PostPublished facts of posts whose deletion is projected."""
        drained = await self._log.drained()
        start = int(await self._store.run("GET", keys.SCRUBBED) or 0)
        if start >= drained:
            return
        texts = [
            entry_id(fact.event.post)
            async for fact in self._log.replay(start, drained)
            if isinstance(fact.event, PostDeleted)
        ]
        if texts:
            await self._store.run("XDEL", keys.LOG, *texts)
            await self._scrub_dead_letters(set(texts))
        await self._store.run("SET", keys.SCRUBBED, drained)


async def with_patience(work: Callable[[], Awaitable[V]]) -> V:
    """Do something; while the store is away, wait and do it again."""
    while True:
        try:
            return await work()
        except StoreUnavailable as outage:
            logger.warning("The worker waits for the store: %s", outage.reason)
            await asyncio.sleep(PAUSE_SECONDS)
