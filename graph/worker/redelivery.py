"""Redelivery: project dead letters again, after the cause of their failure has been removed.

Projections are idempotent as long as tombstones record what later events have done. The tombstones of old events may
have been trimmed: a deletion of an archived post would then be counted a second time. So old events are refused, and
`fanline repair` must correct the store instead.
"""

from collections.abc import AsyncIterator, Collection
from datetime import timedelta

from graph.errors import StoreUnavailable
from graph.home.fan_out import FanOuts
from graph.home.pacing import UNPACED
from graph.log.dead_letters import DeadLetter, DeadLetters
from graph.log.encoding import decode, encoded_entry
from graph.log.log import Log
from graph.log.numbers import before, number_of
from graph.model import number_at
from graph.projections.mode import Mode
from graph.projections.projections import Projections
from graph.worker.consumer import GROUP

NOT_ARCHIVED = "It is projected, but its content is not in the archive. Correct the database by hand, and drop it."
TOO_OLD = (
    "It is so old that tombstones of later events may have been trimmed, and projecting it could undo these events. "
    "Drop it, and run `fanline repair`."
)


class Redelivery:
    """Projects dead letters again. Repeating it is safe. Tombstones live for at least `tombstones_live`."""

    def __init__(
        self,
        dead_letters: DeadLetters,
        log: Log,
        projections: Projections,
        fan_outs: FanOuts,
        tombstones_live: timedelta,
    ) -> None:
        self._dead_letters = dead_letters
        self._log = log
        self._tombstones_live = tombstones_live
        self._projections = projections
        self._fan_outs = fan_outs

    async def retry(self, entries: Collection[str] | None) -> AsyncIterator[tuple[DeadLetter, str]]:
        """Yield the dead letters of these entries (all if None) as they are projected, each with its error or ''.

        Letters that succeed are dropped. If this raises StoreUnavailable, the remaining letters are kept.
        """
        async for letter in self._dead_letters.all():
            if entries is None or letter.entry in entries:
                yield letter, await self._retry(letter)

    async def _retry(self, letter: DeadLetter) -> str:
        if not letter.is_archived:
            return NOT_ARCHIVED
        try:
            if not letter.is_task and await self._is_old(letter):
                return TOO_OLD
            await self._project(letter)
        except StoreUnavailable:
            raise
        except Exception as error:  # whatever made the event fail before
            return f"{type(error).__name__}: {error}"
        await self._dead_letters.drop([letter.id])
        return ""

    async def _is_old(self, letter: DeadLetter) -> bool:
        """Return True if tombstones as new as the event may have been trimmed. One round trip."""
        await self._log.watermark()
        oldest = before(number_at(self._log.clock()), self._tombstones_live)
        return number_of(letter.entry) <= min(oldest, self._log.discardable)

    async def _project(self, letter: DeadLetter) -> None:
        words = [word for field in letter.fields.items() for word in field]
        if letter.is_task:
            await self._fan_outs.work(letter.entry, words, GROUP)(UNPACED)
            return
        event = decode(number_of(letter.entry), *encoded_entry((letter.entry, words)))
        await self._projections.project([event], Mode.WORKER)
