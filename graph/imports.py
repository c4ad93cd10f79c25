"""Imports: facts of the past, brought into a new store in bulk through the same log and projections as all others.

An import leaves a note in the store of what it brings, so that one that broke off can be told from other writes and
go on where the log ends.
"""

from collections.abc import Sequence

from graph import keys
from graph.facts import Fact
from graph.log import Log, Once
from graph.projections import Projections
from graph.store import Store
from graph.worker import Worker

ONCE_SECONDS = 600


class Imports:
    """Brings in facts whose numbers are settled beforehand: each the lowest of its own millisecond."""

    def __init__(self, store: Store, log: Log, projections: Projections, worker: Worker) -> None:
        self._store = store
        self._log = log
        self._projections = projections
        self._worker = worker

    async def note(self) -> str | None:
        """Read what the last import noted, or None if there never was one. One round trip."""
        note: str | None = await self._store.run("GET", keys.IMPORT)
        return note

    async def begin(self, note: str) -> str:
        """Leave a note, unless there is one; give the one that stands. Two round trips."""
        await self._store.run("SET", keys.IMPORT, note, "NX")
        return await self.note() or note

    async def end(self, note: str) -> None:
        """Replace the note, now that all facts are in. One round trip."""
        await self._store.run("SET", keys.IMPORT, note)

    async def bring(self, facts: Sequence[Fact]) -> None:
        """Append a batch of facts, in order of number, project them wholly, and count them as drained.

        Repeating the newest batch of the log is safe and mends what a crash left undone. Logins of new people have
        to be claimed before. Raises OutOfStep if the log holds facts that an import cannot come after.
        """
        if await self._log.last() != facts[-1].number:
            events, times = [fact.event for fact in facts], [fact.at for fact in facts]
            once = Once("-", f"import:{facts[0].number}", ONCE_SECONDS)
            await self._log.append(events, once, times, first=facts[0].number)
        await self._projections.project(facts, whole=True)
        await self._worker.pass_over(facts[-1].number)

    async def tidy(self) -> None:
        """Let the log forget what is older than its retention."""
        await self._worker.tidy()
