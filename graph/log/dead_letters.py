"""Dead letters: events and fan-out tasks that could not be projected, with the reason."""

import logging
from collections.abc import Collection, Sequence

from graph import keys
from graph.store.commands import script
from graph.store.store import Store

logger = logging.getLogger("fanline.worker")


class DeadLetters:
    """The stream of dead letters. It is not read by workers and not trimmed."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, stream: str, group: str, entry: str, reason: str, open_tasks: str | None = None) -> None:
        """Move a pending entry of a stream to the dead letters, unless another worker has done so. One round trip.

        `open_tasks` is the key of the open tasks if the entry is a task; the task is then removed from both.
        """
        logger.error("Entry %s of %s becomes a dead letter: %s", entry, stream, reason)
        names = [stream, keys.DEAD, *([open_tasks] if open_tasks else [])]
        await self._store.send([script("dead_letter").call(names, group, entry, reason)])

    async def keep(self, entry: str, words: Sequence[str], reason: str) -> None:
        """Add a copy of a log entry, given by its id, fields and values. One round trip."""
        logger.error("Entry %s of %s becomes a dead letter: %s", entry, keys.LOG, reason)
        await self._store.run("XADD", keys.DEAD, "*", "entry", entry, "reason", reason, *words)

    async def oldest(self, count: int = 100) -> list[dict[str, str]]:
        """Return the oldest dead letters: `entry`, `reason`, and the fields of the event or task. One round trip."""
        letters = await self._store.run("XRANGE", keys.DEAD, "-", "+", "COUNT", count)
        return [dict(zip(fields[::2], fields[1::2], strict=True)) for _, fields in letters]

    async def remove(self, entries: Collection[str]) -> None:
        """Remove the dead letters of these log entries. Up to two round trips."""
        letters = await self._store.run("XRANGE", keys.DEAD, "-", "+")
        found = [letter for letter, fields in letters if fields[1] in entries]
        if found:
            await self._store.run("XDEL", keys.DEAD, *found)
