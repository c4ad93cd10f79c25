"""Healing after a failover in which the log lost events: other shards hold keys that were derived from those events.

The events are missing from the log, so reading the log again corrects nothing. Instead, a repair compares the store
with the archive, as `fanline repair` does.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable
from typing import Protocol

from graph.archiver.lease import Lease
from graph.errors import ArchiveUnavailable, StoreUnavailable, WrongArchive
from graph.log.log import Log
from graph.log.losses import Losses
from graph.repair.report import RepairReport

CHECK_SECONDS = 1.0
MAX_PAUSE_SECONDS = 600.0

logger = logging.getLogger("fanline.worker")


class Repairing(Protocol):
    """Repairs the store, and returns the report. See `Repair.run`."""

    def __call__(self, *, announces: bool) -> Awaitable[RepairReport]: ...  # noqa: D102


class Healing:
    """Repairs the store after lost events, in the process that holds the lease of the archiver.

    A repair compares only what the archive covers, so it begins when the archive has passed the lost events. It leaves
    differences that later events may have caused, and those that change before it corrects them; and an event that it
    adds to the archive can show another difference. So it is repeated until it has nothing to correct, after pauses,
    each twice as long as the one before, up to ten minutes.
    """

    def __init__(self, log: Log, losses: Losses, lease: Lease, repair: Repairing) -> None:
        self._log = log
        self._losses = losses
        self._lease = lease
        self._repair = repair
        self._pause = self._again_at = 0.0

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
        """Repair the store if events were lost and later ones are archived. Return True if all of it was repaired.

        One round trip while no events are lost, none during a pause.
        """
        if time.monotonic() < self._again_at:
            return False
        lost = await self._losses.highest()
        if not lost:
            return False
        await self._log.watermark()
        if self._log.discardable <= lost:
            return False
        logger.warning("A failover lost events up to %d; the store is compared with the archive", lost)
        report = await self._repair(announces=not self._pause)
        if left := report.left_out + report.changed + report.corrected.total():
            self._pause = min(MAX_PAUSE_SECONDS, 2 * self._pause or CHECK_SECONDS)
            self._again_at = time.monotonic() + self._pause
            logger.warning("%d differences were corrected or left, and are compared again", left)
            return False
        self._pause = 0.0
        await self._losses.forget(lost)
        logger.warning("The store was repaired")
        return True
