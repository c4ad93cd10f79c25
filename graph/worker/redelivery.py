"""Redelivery: project dead letters again, when the cause of their failure is removed."""

from collections.abc import AsyncIterator, Collection

from graph.errors import StoreUnavailable
from graph.home.fan_out import FanOuts
from graph.home.pacing import UNPACED
from graph.log.dead_letters import DeadLetter, DeadLetters
from graph.log.encoding import decode, encoded_entry
from graph.log.numbers import number_of
from graph.projections.mode import Mode
from graph.projections.projections import Projections
from graph.worker.consumer import GROUP

NOT_ARCHIVED = "It is projected, but the archive lacks its content. Correct the database by hand, and drop it."


class Redelivery:
    """Projects dead letters again. Repeating it is safe: projections are idempotent."""

    def __init__(self, dead_letters: DeadLetters, projections: Projections, fan_outs: FanOuts) -> None:
        self._dead_letters = dead_letters
        self._projections = projections
        self._fan_outs = fan_outs

    async def retry(self, entries: Collection[str] | None) -> AsyncIterator[tuple[DeadLetter, str]]:
        """Project the dead letters of these entries, or all for None. Yield each with the problem, '' if it succeeded.

        Those that succeed are dropped. Raises StoreUnavailable; the letters that are left then remain.
        """
        async for letter in self._dead_letters.all():
            if entries is None or letter.entry in entries:
                yield letter, await self._retry(letter)

    async def _retry(self, letter: DeadLetter) -> str:
        if not letter.is_archived:
            return NOT_ARCHIVED
        try:
            await self._project(letter)
        except StoreUnavailable:
            raise
        except Exception as error:  # whatever made the event fail before
            return f"{type(error).__name__}: {error}"
        await self._dead_letters.drop([letter.id])
        return ""

    async def _project(self, letter: DeadLetter) -> None:
        words = [word for field in letter.fields.items() for word in field]
        if letter.is_task:
            await self._fan_outs.work(letter.entry, words, GROUP)(UNPACED)
            return
        event = decode(number_of(letter.entry), *encoded_entry((letter.entry, words)))
        await self._projections.project([event], Mode.WORKER)
