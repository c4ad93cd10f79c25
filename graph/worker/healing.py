"""Healing after a failover in which the log lost events: other shards hold keys that were derived from those events.

The events are missing from the log, so reading the log again corrects nothing. Instead, a repair compares the store
with the archive, as `fanline repair` does.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from graph.archiver.lease import Lease
from graph.errors import ArchiveUnavailable, StoreUnavailable, WrongArchive
from graph.log.log import Log
from graph.log.losses import Losses

CHECK_SECONDS = 1.0

logger = logging.getLogger("fanline.worker")


class Healing:
    """Repairs the store after lost events, in the process that holds the lease of the archiver.

    A repair compares only what the archive covers, so it begins when the archive has passed the lost events.
    """

    def __init__(self, log: Log, losses: Losses, lease: Lease, repair: Callable[[], Awaitable[object]]) -> None:
        self._log = log
        self._losses = losses
        self._lease = lease
        self._repair = repair

    async def run(self) -> None:
        """Check once a second, until cancelled. A repair that fails or is interrupted is repeated."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                if self._lease.is_held:
                    await self.check()
            except (ArchiveUnavailable, StoreUnavailable, WrongArchive) as problem:
                logger.info("The store cannot be repaired at the moment: %s", problem)

    async def check(self) -> bool:
        """Repair the store if events were lost and later ones are archived. Return True if it was repaired.

        One round trip while no events are lost.
        """
        lost = await self._losses.highest()
        if not lost:
            return False
        await self._log.watermark()
        if self._log.discardable <= lost:
            return False
        logger.warning("A failover lost events up to %d; the store is compared with the archive", lost)
        await self._repair()
        await self._losses.forget(lost)
        logger.warning("The store was repaired")
        return True
