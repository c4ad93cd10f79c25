"""The archiver: the last consumer of the log. It copies every projected event into the archive.

Three event numbers mark the progress. D is the projection watermark in the store: every event up to D is projected. A
is the archive watermark in the archive, and M its copy next to the log in the store: every event up to A, and so every
event up to M, is archived. A batch takes these steps:

1. Read the events in (min(A, M), D], and the password hashes that they set.
2. Insert the batch and advance A, in one transaction that fails if another archiver has advanced A.
3. Before the commit, wait briefly for the replicas of the log's shard, so that a failover rarely loses archived events.
4. Advance M, if the log still holds the last event of the batch.

A process can die between any two steps. If M is below A, it died before the last step, or a failover has lost the end
of the log: the events that only the archive holds are then projected again, and streams report a gap.

Everything that discards data, such as the trimming of the log, uses the lower of M and D.
"""

import asyncio
import logging
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from graph import keys
from graph.archive.rows import ArchiveChanged, ConflictingEvent, EventsRefused
from graph.archiver.batch import LogBatch, read_batch
from graph.archiver.hot_window_cutter import HotWindowCutter
from graph.archiver.lease import Lease
from graph.archiver.lost_events import LostEvents
from graph.binding import Binding
from graph.commit import Commit
from graph.errors import (
    ArchiverStopped,
    ArchiveUnavailable,
    GraphError,
    StoreNotReady,
    StoreUnavailable,
    WrongArchive,
)
from graph.log.dead_letters import DeadLetters
from graph.log.numbers import entry_id
from graph.posts.like_pages import LIKED, LIKERS
from graph.projections.projections import Projections
from graph.store.commands import script
from graph.store.store import Store

if TYPE_CHECKING:
    from graph.archive.archive import Archive

BATCH = 1000
INTERVAL_SECONDS = 0.5
RETRY_SECONDS = 5.0
CHECK_SECONDS = 5.0
REPLICAS_MS = 1000
ALARM_SECONDS = 60
PROGRESS = (keys.LOG, keys.ARCHIVED, keys.ARCHIVE_PROGRESS, keys.TRIMMED)

logger = logging.getLogger("fanline.archiver")


class Archiver:
    """Copies the log into the archive, `batch` events at a time.

    Metrics: `archived` counts events, `failures` counts failed attempts, `batch_seconds` is the duration of the last
    batch.
    """

    def __init__(
        self,
        store: Store,
        archive: "Archive",
        binding: Binding,
        projections: Projections,
        hot_window: HotWindowCutter,
        dead_letters: DeadLetters,
        lease: Lease,
        commit: Commit,
        *,
        batch: int = BATCH,
    ) -> None:
        self._store = store
        self._archive = archive
        self._binding = binding
        self._projections = projections
        self._lost_events = LostEvents(store, archive, projections, commit)
        self._hot_window = hot_window
        self._dead_letters = dead_letters
        self._batch = self._size = batch
        self._lease = lease
        self._known: int | None = None
        self._checked_at = 0.0
        self._kept = 0  # the last event that became a dead letter
        self.archived = 0
        self.failures = 0
        self.batch_seconds = 0.0
        self._reported_trimmed = 0

    async def run(self) -> None:
        """Archive the log as it grows, until cancelled. Continue after outages; report errors that need an operator."""
        try:
            while True:
                pause = await self._attempt()
                await asyncio.sleep(pause)
        finally:
            await self._give_up_lease()

    async def _attempt(self) -> float:
        """Archive all projected events if this process holds the lease. Return the seconds until the next attempt."""
        try:
            if await self._lease.take():
                await self.work()
        except ArchiveUnavailable as outage:
            logger.warning("The archive is unavailable; the log keeps the events: %s", outage.reason)
            await self._fail()
        except StoreNotReady as refusal:
            logger.warning("The archiver cannot use the store: %s", refusal.reason)
        except StoreUnavailable as outage:
            logger.warning("The store is unavailable; the archiver will retry: %s", outage.reason)
            return INTERVAL_SECONDS
        except (ArchiverStopped, ConflictingEvent, WrongArchive) as stop:
            await self._report(stop)
        except Exception:
            logger.exception("The archiver failed and will retry")
            await self._fail()
        else:
            return INTERVAL_SECONDS
        return RETRY_SECONDS

    async def _fail(self) -> None:
        """Count a failure, halve the batch, and give up the lease: another process may be able to reach the archive."""
        self.failures += 1
        self._size = max(1, self._size // 2)
        await self._give_up_lease()

    async def _give_up_lease(self) -> None:
        with suppress(StoreUnavailable):
            await self._lease.give_up()

    async def _report(self, stop: GraphError) -> None:
        self.failures += 1
        logger.error("The archiver has stopped: %s", stop)
        with suppress(StoreUnavailable):
            await self._store.run(*script("set").call([keys.ALARM], str(stop), ALARM_SECONDS))
        await self._give_up_lease()

    async def work(self) -> None:
        """Archive every projected event, and cut the lists of posts and likes that have become too long.

        Raises ArchiveUnavailable, StoreUnavailable, WrongArchive, ConflictingEvent and ArchiverStopped.
        """
        while await self.archive_batch():
            if not await self._lease.take():
                return

    async def archive_batch(self) -> bool:
        """Archive the next batch. Return True if there may be more events.

        Four to six round trips and one transaction, plus the cuts; one round trip if there are no new events. Raises
        the same errors as `work`.
        """
        binding = await self._check_archive()
        store_id = binding.partition(":")[0]
        archived, watermark, trimmed = await self._marks(binding)
        known = await self._known_number()
        if archived < known:
            trimmed = await self._lost_events.recover(archived, known, trimmed)
        batch = await read_batch(self._store, self._projections, archived, watermark, self._size)
        if batch.last:
            if not await self._commit(batch, store_id, known) or not await self._advance(archived, trimmed, batch):
                return True
            up_to = min(watermark, batch.last)
            await self._hot_window.cut_full(batch.lists, up_to)
            await self._hot_window.likes.cut_full(LIKERS, batch.liked_posts, up_to)
            await self._hot_window.likes.cut_full(LIKED, batch.likers, up_to)
        if batch.stop is not None:
            raise batch.stop
        return batch.is_full

    async def _check_archive(self) -> str:
        """Return the binding. Every 5 seconds, check the binding and forget A, so that A is read again.

        The archive may have been restored from a backup, or bound to another store, since the last batch.
        """
        now = asyncio.get_running_loop().time()
        again = now > self._checked_at + CHECK_SECONDS
        binding = await self._binding.check(again=again)
        if again:
            self._known, self._checked_at = None, now
        return binding

    async def _known_number(self) -> int:
        """Return the archive watermark (A) as this process last read or wrote it. Read it if it is unknown."""
        if self._known is None:
            self._known = (await self._archive.state()).watermark
        return self._known

    async def _marks(self, binding: str) -> tuple[int, int, int]:
        """Return the lower of M and A, then D, and the number up to which the log has lost or discarded events.

        If the archive was restored from a backup, lower M first, so that the log keeps the events that the archive
        lacks. Raises ArchiverStopped if the log lacks some of them too. Raises StoreUnavailable if the store has
        another binding or was emptied, which must not be mistaken for lost events.
        """
        found, *numbers = await self._store.read(
            [("GET", key) for key in (keys.BINDING, keys.ARCHIVED, keys.WATERMARK, keys.TRIMMED)]
        )
        if found != binding:
            self._binding.forget()
            raise StoreUnavailable("the store was emptied or replaced")
        archived, watermark, trimmed = (int(number or 0) for number in numbers)
        known = await self._known_number()
        if max(archived, trimmed) > known:
            self._known = None
            known = await self._known_number()
        lowered = max(known, trimmed)
        if archived > lowered:
            logger.warning("The archive was restored: it ends at event %d instead of %d", known, archived)
            lower = script("set_archived").call(PROGRESS, archived, lowered, "", 0, 0, 0, 0)
            await self._store.run(*lower)
        if trimmed > known:
            raise ArchiverStopped(
                f"The log begins after event {trimmed}, but the archive ends at event {known}: the events in between "
                f"are missing. Restore a newer backup of the archive."
            )
        return min(archived, known), watermark, trimmed

    async def _commit(self, batch: LogBatch, store_id: str, known: int) -> bool:
        """Insert a batch. Return False if the next attempt must read the batch again.

        If the database refuses a batch, the next batch is half as large. A single event that it refuses becomes a dead
        letter, and is inserted without its body.
        """
        try:
            if not await self._insert_or_shrink(batch, store_id, known):
                return False
        except ArchiveChanged:
            self._known = None
            self._binding.forget()
            return False
        self._size = min(self._batch, 2 * self._size)
        return True

    async def _insert_or_shrink(self, batch: LogBatch, store_id: str, known: int) -> bool:
        try:
            await self._insert(batch, store_id, known)
        except EventsRefused as refusal:
            if self._size > 1:
                self._size = max(1, len(batch.rows) // 2)
                logger.warning("%s The next batches have %d events.", refusal, self._size)
                return False
            await self._insert_refused(batch, store_id, known, refusal)
        return True

    async def _insert_refused(self, batch: LogBatch, store_id: str, known: int, refusal: EventsRefused) -> None:
        """Insert a refused event without its body, and without its credentials if the archive refuses them too.

        Raises ArchiverStopped if the archive refuses the event even then.
        """
        if self._kept != batch.last:
            await self._dead_letters.keep(entry_id(batch.last), batch.last_fields, str(refusal))
            self._kept = batch.last
        batch.rows = [row._replace(body=None) for row in batch.rows]
        for credentials in (batch.credentials, []):
            batch.credentials = credentials
            try:
                return await self._insert(batch, store_id, known)
            except EventsRefused as reason:
                refusal = reason
        raise ArchiverStopped(
            f"The archive refuses event {batch.last} even without its body. {refusal} Change the database so that it "
            "accepts the event."
        )

    async def _insert(self, batch: LogBatch, store_id: str, known: int) -> None:
        started = monotonic()  # uvloop's clock counts whole milliseconds
        await self._archive.append(
            batch.rows,
            batch.credentials,
            store=store_id,
            watermark=known,
            up_to=batch.last,
            before_commit=lambda: self._store.replicate(keys.REPLICATED, REPLICAS_MS),
        )
        self._known = max(known, batch.last)
        self.archived += len(batch.rows)
        self.batch_seconds = monotonic() - started

    async def _advance(self, archived: int, trimmed: int, batch: LogBatch) -> bool:
        """Advance M to the end of a batch, and update the metrics. Return False if a failover has changed the log."""
        cut, milliseconds = self._hot_window.trimmed, int(1000 * self.batch_seconds)
        work = (len(batch.rows), milliseconds, cut - self._reported_trimmed)
        entry = entry_id(batch.last)
        call = script("set_archived").call(PROGRESS, archived, batch.last, entry, *work, trimmed, *batch.last_fields)
        if not await self._store.run(*call):
            return False
        self._reported_trimmed = cut
        return True
