"""Events that a failover of the log's shard has lost, although some process had received them.

A primary that is cut off from its replicas continues to accept events for a moment. Its successor does not have these
events. Other shards may hold keys that were derived from them. The highest number of a lost event is noted in the store
until a repair has corrected those keys.
"""

from collections import deque

from graph import keys
from graph.log.events import PostDeleted
from graph.log.log import Log
from graph.log.numbers import entry_id
from graph.model import MAX_NUMBER
from graph.store.commands import script
from graph.store.store import Store

MAX_RECEIVED = 1_000


class Losses:
    """Detects lost events, and notes them in the store."""

    def __init__(self, store: Store, log: Log) -> None:
        self._store = store
        self._log = log
        self._received: deque[int] = deque(maxlen=MAX_RECEIVED)

    def receive(self, number: int) -> None:
        """Remember an event that this process has received. Only the last 1,000 are remembered."""
        self._received.append(number)

    async def find(self) -> int:
        """Record and return the highest of the remembered events that the log has lost; 0 if none is lost.

        Call this after a failover. Two round trips, and more if events are missing, to find out whether retention
        or a deletion has removed them.
        """
        missing = await self._missing(tuple(self._received))
        if missing:
            later = self._log.replay(min(missing), MAX_NUMBER)
            missing -= {event.body.post async for event in later if isinstance(event.body, PostDeleted)}
        if not missing:
            return 0
        await self.note(max(missing))
        self._received = deque((each for each in self._received if each not in missing), MAX_RECEIVED)
        return max(missing)

    async def _missing(self, numbers: tuple[int, ...]) -> set[int]:
        """Return the events that the log does not hold, except those that retention has removed."""
        commands = [("XRANGE", keys.LOG, entry_id(number), entry_id(number)) for number in numbers]
        entries = await self._store.read(commands) if commands else []
        missing = {number for number, found in zip(numbers, entries, strict=True) if not found}
        trimmed = await self._log.trimmed() if missing else 0
        return {number for number in missing if number > trimmed}

    async def note(self, number: int) -> None:
        """Record in the store that events up to a number are lost. One round trip."""
        await self._store.run(*script("note_loss").call([keys.LOST], number))

    async def highest(self) -> int:
        """Return the number up to which events have been lost and not yet repaired, or 0. One round trip."""
        return int(await self._store.run("GET", keys.LOST) or 0)

    async def forget(self, number: int) -> None:
        """Remove the note of events lost up to a number, unless later ones have been lost since. One round trip."""
        await self._store.run(*script("delete_if_equal").call([keys.LOST], number))
