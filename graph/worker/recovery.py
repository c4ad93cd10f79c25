"""Recovery after a failover: a replica that lagged takes over, and the last projections on its shard are lost.

The log still holds the events, so the workers read its last minutes again. Projections are idempotent. The consumer
group is moved back, and the rest is the ordinary work of the workers: they share the events, survive crashes, and
retry. The watermark does not go back.

If the log's own shard has lost events, other shards may hold keys that were derived from them (`graph.worker.healing`).
With one shard there is nothing to recover: log and projections are lost together.
"""

import asyncio
import logging
from datetime import timedelta

from graph import keys
from graph.errors import StoreUnavailable
from graph.log.losses import Losses
from graph.model import EPOCH_MS
from graph.store.commands import script
from graph.store.store import Store
from graph.worker.consumer import GROUP

CHECK_SECONDS = 1.0
LAG = timedelta(minutes=5)
"""How far a replica may lag behind its primary. Earlier projections are assumed to have reached it."""

logger = logging.getLogger("fanline.worker")


class Recovery:
    """Watches the primaries by their replication ids, which change in a failover.

    `retention` is how long the log keeps events, and how long a primary may be missing before another replaces it.
    """

    def __init__(self, store: Store, retention: timedelta, losses: Losses) -> None:
        self._store = store
        self._retention = retention
        self._losses = losses
        self._seen: frozenset[str] = frozenset()

    async def run(self) -> None:
        """Check the primaries once a second, until cancelled."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                await self.check()
            except StoreUnavailable as outage:
                logger.info("The primaries are not known at the moment: %s", outage.reason)

    async def check(self) -> bool:
        """Make the workers read the log again if a new primary replaces a missing one. Return True if they do.

        The workers begin some minutes before the missing primaries were last seen. Events that the log itself has lost
        are noted. One round trip to each primary, one more if there are several, and those of `Losses.find` if the
        primaries have changed.
        """
        primaries = await self._store.primaries()
        if len(primaries) < 2:
            return False
        seen = frozenset(primaries.values())
        if seen != self._seen:
            await self._losses.find()
            self._seen = seen
        names = [keys.LOG, keys.PRIMARIES, keys.ADDED_FANOUTS]
        times = [each // timedelta(milliseconds=1) for each in (LAG, self._retention + LAG)]
        call = script("note_primaries").call(names, GROUP, EPOCH_MS, *times, *sorted(primaries.values()))
        [again] = await self._store.send([call])
        if again:
            logger.warning("A shard has a new primary; its last events are being projected again")
        return bool(again)
