"""Imports: events of the past, brought into a new store in bulk through the same log and projections as all others.

An import leaves a note in the store of what it brings, so that one that broke off can be told from other writes and
go on where the log ends. Its events are projected without fan-out; at its end all home caches are forgotten. So who
reads meanwhile sees people, follows, posts and user timelines as far as they have come, but a home timeline may lack
posts until the import is complete.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from graph import keys
from graph.errors import OutOfStep
from graph.log.events import Event
from graph.log.log import IdempotencyKey, Log
from graph.model import EPOCH_MS, number_at
from graph.projections.batches import run_concurrently
from graph.projections.mode import Mode
from graph.projections.projections import Projections
from graph.store.commands import script
from graph.store.store import Store
from graph.worker.consumer import GROUP
from graph.worker.worker import Worker

ONCE_SECONDS = 600
PARTS = 2
CACHES_PER_COMMAND = 1000


class Imports:
    """Brings in events whose numbers are settled beforehand: each the lowest of its own millisecond."""

    def __init__(self, store: Store, log: Log, projections: Projections, worker: Worker, retention: timedelta) -> None:
        self._store = store
        self._log = log
        self._projections = projections
        self._worker = worker
        self._retention = retention

    async def note(self) -> str | None:
        """Read what the last import noted, or None if there never was one. One round trip."""
        note: str | None = await self._store.run("GET", keys.IMPORT)
        return note

    async def begin(self, note: str) -> str:
        """Leave a note, unless there is one; give the one that stands. Two round trips."""
        await self._store.run("SET", keys.IMPORT, note, "NX")
        return await self.note() or note

    async def bring(self, events: Sequence[Event]) -> None:
        """Bring in a batch of events, in order of number: afterwards they are in the log, projected and drained.

        Repeating the newest batch of the log is safe and mends what a crash left undone. Logins of new people have
        to be claimed before. Raises OutOfStep if the log holds events that an import cannot come after. Events that
        the log would forget at once, being older than its retention, are only counted in it.
        """
        first, last, upto = events[0].number, await self._log.last(), events[-1].number
        if last >= first and last != upto:
            raise OutOfStep(f"The log has gone beyond {first} already.")
        if upto < number_at(datetime.now(UTC) - self._retention):
            await self._project(events)
            await self._advance(events)
        else:
            if last != upto:
                await self._append(events)
            await self._project(events)
            await self._worker.pass_over(upto)

    async def _project(self, events: Sequence[Event]) -> None:
        """Project the events in parts, so that while the store works on one, this process prepares another."""
        size = -(-len(events) // PARTS)
        parts = [events[start : start + size] for start in range(0, len(events), size)]
        await run_concurrently([partial(self._projections.project, part, Mode.IMPORT) for part in parts])

    async def _append(self, events: Sequence[Event]) -> None:
        idempotency_key = IdempotencyKey("-", f"import:{events[0].number}", ONCE_SECONDS)
        times = [event.at for event in events]
        await self._log.append([event.body for event in events], idempotency_key, times, first=events[0].number)

    async def _advance(self, events: Sequence[Event]) -> None:
        """Count events as appended, drained and trimmed, in one step.

        It comes after they were projected, since nobody could read them from the log if it came to nothing.
        """
        first, upto = events[0].number, events[-1].number
        advance = script("advance_log").call(
            [keys.LOG, keys.WATERMARK, keys.TRIMMED], GROUP, first, upto, len(events), EPOCH_MS
        )
        if await self._store.run(*advance) == "out of step":
            raise OutOfStep(f"The log has gone beyond {first} already.")
        self._log.seen = max(self._log.seen, upto)

    async def end(self, note: str) -> None:
        """Forget all home caches, and replace the note, now that all events are in.

        One round trip for about every thousand keys in the store.
        """
        async for caches in self._store.scan(keys.HOMES):
            groups = self._store.together(caches, str, CACHES_PER_COMMAND)
            await self._store.send([("UNLINK", *group) for group in groups])
        await self._worker.tidy()
        await self._store.run("SET", keys.IMPORT, note)
