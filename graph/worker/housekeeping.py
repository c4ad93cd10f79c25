"""Housekeeping: remove old events, deleted texts and idle consumers from the log."""

from datetime import timedelta

from graph import keys
from graph.chunks import chunks
from graph.log.dead_letters import DeadLetters
from graph.log.events import PostDeleted
from graph.log.log import Log
from graph.log.numbers import entry_id
from graph.model import EPOCH_MS
from graph.store.commands import script
from graph.store.store import Store
from graph.worker.consumer import GROUP, create_groups
from graph.worker.recovery import LAG

IDLE_CONSUMER_MS = 3_600_000
TRIM_BATCH = 1000


class Housekeeping:
    """Scrubs and trims the log, up to the last event that is both projected and in the archive.

    The log keeps events for the duration of `retention`. While it holds more than half of its limit, the oldest events
    are removed earlier, except those of the last minutes, which a recovery reads again. Beyond three quarters of the
    limit, those events are removed too. Any process may tidy the log at any time.
    """

    def __init__(self, store: Store, log: Log, dead_letters: DeadLetters, retention: timedelta) -> None:
        self._store = store
        self._log = log
        self._dead_letters = dead_letters
        self.retention = retention

    async def tidy(self) -> None:
        """Remove the texts of deleted posts, idle consumers, and old events from the log.

        A consumer is idle if it has no pending entries and has not read for an hour.
        """
        await self._scrub()
        await create_groups(self._store)
        forget = script("forget_consumers")
        await self._store.send([forget.call([stream], GROUP, IDLE_CONSUMER_MS) for stream in (keys.LOG, keys.FANOUTS)])
        await self._trim()

    async def _trim(self) -> None:
        """Remove old events. One round trip for every 1,000.

        A script that removed them all at once would block the store.
        """
        names = [keys.LOG, keys.WATERMARK, keys.ARCHIVED, keys.TRIMMED]
        retention, lag = (each // timedelta(milliseconds=1) for each in (self.retention, LAG))
        bounds = (self._log.limit // 2, lag, self._log.limit * 3 // 4)
        trim = script("trim_log").call(names, retention, EPOCH_MS, TRIM_BATCH, *bounds)
        while (await self._store.send([trim]))[0] >= TRIM_BATCH:
            pass

    async def _scrub(self) -> None:
        """Remove the PostPublished events of deleted posts from the log and from the dead letters.

        Considers only deletions that are both projected and in the archive (`Log.discardable`).
        """
        await self._log.watermark()
        up_to = self._log.discardable
        start = int(await self._store.run("GET", keys.SCRUBBED) or 0)
        if start >= up_to:
            return
        published = {
            entry_id(event.body.post)
            async for event in self._log.replay(start, up_to)
            if isinstance(event.body, PostDeleted)
        }
        entries = sorted(published)
        for some in chunks(entries, TRIM_BATCH):
            await self._store.run("XDEL", keys.LOG, *some)
        if published:
            await self._dead_letters.remove(published)
        await self._store.run(*script("set").call([keys.SCRUBBED], up_to, 0))
