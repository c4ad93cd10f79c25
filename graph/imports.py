"""Imports: append and project past events in bulk.

An import records a note about its source in the store. An interrupted import is recognised by its note and continues
where the log ends. Its events are projected without fan-out, and all home caches are deleted at its end. Until then
users, follows, posts and user timelines are correct up to the last batch, but home timelines may lack posts.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from graph import keys
from graph.errors import OutOfStep
from graph.log.events import Event
from graph.log.log import IdempotencyKey, Log
from graph.log.numbers import entry_id
from graph.model import EPOCH_MS, number_at
from graph.projections.batches import run_concurrently
from graph.projections.mode import Mode
from graph.projections.projections import Projections
from graph.store.commands import script
from graph.store.store import Store
from graph.worker.consumer import GROUP
from graph.worker.housekeeping import Housekeeping

IDEMPOTENCY_SECONDS = 600
PARTS = 2
CACHES_PER_COMMAND = 1000


class Imports:
    """Imports events with predetermined numbers, each the lowest number of its own millisecond."""

    def __init__(
        self, store: Store, log: Log, projections: Projections, housekeeping: Housekeeping, retention: timedelta
    ) -> None:
        self._store = store
        self._log = log
        self._projections = projections
        self._housekeeping = housekeeping
        self._retention = retention

    async def note(self) -> str | None:
        """Return the note of the last import, or None if there was none. One round trip."""
        note: str | None = await self._store.run("GET", keys.IMPORT)
        return note

    async def begin(self, note: str) -> str:
        """Record a note unless one exists, and return the recorded note. Two round trips."""
        await self._store.run("SET", keys.IMPORT, note, "NX")
        return await self.note() or note

    async def add(self, events: Sequence[Event]) -> None:
        """Append and project a batch of events, in order of their numbers, and advance the watermark.

        The newest batch may be repeated, which completes it after a crash. The logins of new users must be claimed
        beforehand. Events older than the log's retention are counted in the log but not stored. Raises OutOfStep if the
        log already has newer events.
        """
        first, last, end = events[0].number, await self._log.last(), events[-1].number
        if last >= first and last != end:
            raise OutOfStep(f"The log already has events after number {first}.")
        if end < number_at(datetime.now(UTC) - self._retention):
            await self._project(events)
            await self._advance_log(events)
        else:
            if last != end:
                await self._append(events)
            await self._project(events)
            await self.advance_watermark(end)

    async def _project(self, events: Sequence[Event]) -> None:
        """Project the events in two parts concurrently, so that one is prepared while the store works on the other."""
        size = -(-len(events) // PARTS)
        parts = [events[start : start + size] for start in range(0, len(events), size)]
        await run_concurrently([partial(self._projections.project, part, Mode.IMPORT) for part in parts])

    async def _append(self, events: Sequence[Event]) -> None:
        idempotency_key = IdempotencyKey("-", f"import:{events[0].number}", IDEMPOTENCY_SECONDS)
        times = [event.at for event in events]
        await self._log.append([event.body for event in events], idempotency_key, times, first=events[0].number)

    async def _advance_log(self, events: Sequence[Event]) -> None:
        """Count events as appended, projected and trimmed, in one atomic step, after they have been projected.

        After a crash before this step the import must repeat the batch, because the log does not hold the events.
        """
        first, end = events[0].number, events[-1].number
        advance = script("advance_log").call(
            [keys.LOG, keys.WATERMARK, keys.TRIMMED], GROUP, first, end, len(events), EPOCH_MS
        )
        if await self._store.run(*advance) == "out of step":
            raise OutOfStep(f"The log already has events after number {first}.")
        self._log.seen = max(self._log.seen, end)

    async def advance_watermark(self, number: int) -> None:
        """Set the watermark, and the position of the workers in the log, to at least this number. One round trip."""
        advance = script("advance_watermark").call([keys.LOG, keys.WATERMARK], GROUP, number, entry_id(number))
        await self._store.send([advance])

    async def end(self, note: str) -> None:
        """Delete all home caches, clean up the log and replace the note, after the last batch.

        One round trip for about every 1,000 keys in the store.
        """
        async for caches in self._store.scan(keys.HOMES):
            groups = self._store.together(caches, str, CACHES_PER_COMMAND)
            await self._store.send([("UNLINK", *group) for group in groups])
        await self._housekeeping.tidy()
        await self._store.run("SET", keys.IMPORT, note)
