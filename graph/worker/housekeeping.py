"""Housekeeping: remove from the log what is no longer needed."""

from datetime import UTC, datetime, timedelta

from graph import keys
from graph.log.events import PostDeleted
from graph.log.log import Log
from graph.log.numbers import entry_id
from graph.model import EPOCH_MS, number_at
from graph.store.commands import script
from graph.store.store import Store
from graph.worker.consumer import GROUP, create_groups
from graph.worker.dead_letters import DeadLetters

IDLE_CONSUMER_MS = 3_600_000


class Housekeeping:
    """Scrubs and trims the log. Any process may run it at any time."""

    def __init__(self, store: Store, log: Log, dead_letters: DeadLetters, retention: timedelta) -> None:
        self._store = store
        self._log = log
        self._dead_letters = dead_letters
        self._retention = retention

    async def tidy(self) -> None:
        """Remove the texts of deleted posts, idle consumers, and events older than the retention from the log.

        Events above the watermark stay in the log. A consumer is idle if it has no pending entries and has not read for
        an hour.
        """
        await self._scrub()
        await create_groups(self._store, self._log)
        oldest = max(0, number_at(datetime.now(UTC) - self._retention))
        forget, trim = script("forget_consumers"), script("trim_log")
        await self._store.send(
            [
                forget.call([keys.LOG], GROUP, IDLE_CONSUMER_MS),
                forget.call([keys.FANOUTS], GROUP, IDLE_CONSUMER_MS),
                trim.call([keys.LOG, keys.WATERMARK, keys.TRIMMED], oldest, EPOCH_MS),
            ]
        )

    async def _scrub(self) -> None:
        """Remove the PostPublished events of posts whose deletion is projected, also from the dead letters."""
        watermark = await self._log.watermark()
        start = int(await self._store.run("GET", keys.SCRUBBED) or 0)
        if start >= watermark:
            return
        published = {
            entry_id(event.body.post)
            async for event in self._log.replay(start, watermark)
            if isinstance(event.body, PostDeleted)
        }
        if published:
            await self._store.run("XDEL", keys.LOG, *published)
            await self._dead_letters.remove(published)
        await self._store.run("SET", keys.SCRUBBED, watermark)
