"""Dead letters: events and fan-out tasks that could not be projected or archived, with the reason."""

import logging
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass

from graph import keys
from graph.store.commands import script
from graph.store.store import Store

MAX_DEAD_LETTERS = 10_000
LETTERS_PER_READ = 500

logger = logging.getLogger("fanline.worker")


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A dead letter: its id, the id of the log or task entry, the reason, and the fields of the event or task.

    `is_archived` is False for an event that is projected, but whose content the archive has refused.
    """

    id: str
    entry: str
    reason: str
    fields: dict[str, str]

    @property
    def is_task(self) -> bool:
        """True if this is a fan-out task, not an event."""
        return "kind" not in self.fields and "post" in self.fields

    @property
    def is_archived(self) -> bool:
        """False if the archive has refused the content."""
        return self.fields.get("archive") != "refused"


class DeadLetters:
    """The stream of dead letters. Workers do not read it. Beyond `MAX_DEAD_LETTERS` the oldest are dropped."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, stream: str, group: str, entry: str, reason: str, open_tasks: str | None = None) -> None:
        """Move a pending entry of a stream to the dead letters, unless another worker has done so. One round trip.

        `open_tasks` is the key of the open tasks if the entry is a task; the task is then removed from there as well.
        """
        logger.error("Entry %s of %s is being set aside as a dead letter: %s", entry, stream, reason)
        names = [stream, keys.DEAD, *([open_tasks] if open_tasks else [])]
        await self._store.send([script("dead_letter").call(names, group, entry, reason)])

    async def keep(self, entry: str, words: Sequence[str], reason: str) -> None:
        """Add a copy of a log entry whose content the archive refuses. One round trip."""
        logger.error("Entry %s of %s is being set aside as a dead letter: %s", entry, keys.LOG, reason)
        fields = ("entry", entry, "reason", reason, *words, "archive", "refused")
        await self._store.run(*script("keep_dead_letter").call([keys.DEAD], *fields))

    async def all(self) -> AsyncIterator[DeadLetter]:
        """Yield the dead letters, oldest first. One round trip for every 500."""
        start = "-"
        while True:
            rows = await self._store.run("XRANGE", keys.DEAD, start, "+", "COUNT", LETTERS_PER_READ)
            for id_, words in rows:
                fields = dict(zip(words[::2], words[1::2], strict=True))
                yield DeadLetter(id_, fields.pop("entry"), fields.pop("reason"), fields)
            if len(rows) < LETTERS_PER_READ:
                return
            start = f"({rows[-1][0]}"

    async def remove(self, entries: Collection[str]) -> None:
        """Remove the dead letters of these log entries. Two round trips, and one for every 500 dead letters."""
        await self.drop([letter.id async for letter in self.all() if letter.entry in entries])

    async def drop(self, ids: Sequence[str]) -> None:
        """Remove dead letters by their ids. One round trip."""
        if ids:
            await self._store.run("XDEL", keys.DEAD, *ids)

    async def trim(self) -> None:
        """Drop and count the oldest dead letters beyond the limit. One round trip."""
        trim = script("trim_dead_letters").call([keys.DEAD, keys.DEAD_DROPPED], MAX_DEAD_LETTERS)
        if dropped := (await self._store.send([trim]))[0]:
            logger.error("%d dead letters were dropped: there are more than %d", dropped, MAX_DEAD_LETTERS)
