"""Healing after a failover in which the log lost events: other shards hold keys that were derived from those events.

The events are missing from the log, so reading the log again corrects nothing. Instead, a repair compares the store
with the archive, as `fanline repair` does.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from graph.archiver.lease import Lease
from graph.errors import ArchiveUnavailable, StoreUnavailable, WrongArchive
from graph.log.log import Log
from graph.log.losses import Losses
from graph.repair.report import RepairReport

CHECK_SECONDS = 1.0
MAX_PAUSE_SECONDS = 600.0
MAX_RUNS = 12  # within half an hour, if each one is fast

logger = logging.getLogger("fanline.worker")


class Repairing(Protocol):
    """Repairs the store, and returns the report. See `Repair.run`."""

    def __call__(self, *, announces: bool) -> Awaitable[RepairReport]: ...  # noqa: D102


class Healing:
    """Repairs the store after lost events, in the process that holds the lease of the archiver.

    A repair compares only what the archive covers, so it begins when the archive has passed the lost events. It leaves
    differences that later events may have caused, and those that change before it corrects them; and an event that it
    adds to the archive can show another difference. So it runs until it has nothing to correct, at most twelve times.
    Each pause is twice as long as the one before and at least as long as the repair took, up to ten minutes.
    """

    def __init__(
        self,
        log: Log,
        losses: Losses,
        lease: Lease,
        repair: Repairing,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._losses = losses
        self._lease = lease
        self._repair = repair
        self._clock = clock
        self._begin(0)

    def _begin(self, lost: int) -> None:
        self._lost = lost
        self._runs, self._again_at = 0, 0.0
        self._announces = True

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
        """Repair the store if events were lost and later ones are archived. Return True if nothing is left to correct.

        One round trip while no events are lost, and during a pause.
        """
        lost = await self._losses.highest()
        if lost != self._lost:
            self._begin(lost)
        if not lost or self._clock() < self._again_at:
            return False
        await self._log.watermark()
        if self._log.discardable <= lost:
            return False
        logger.warning("A failover lost events up to %d; the store is compared with the archive", lost)
        left = await self._run_repair()
        if left and self._runs < MAX_RUNS:
            logger.warning("%d differences were corrected or left, and are compared again", left)
            return False
        if left:
            logger.warning("%d differences may be left: run `fanline repair`", left)
        await self._losses.forget(lost)
        logger.warning("The store was repaired")
        return True

    async def _run_repair(self) -> int:
        """Repair once, and begin a pause, even if the repair fails. Return the number of differences to compare again.

        A repair that fails may have corrected something, which the next one then announces.
        """
        began, pause = self._clock(), CHECK_SECONDS * 2 ** min(self._runs, MAX_RUNS)
        self._runs += 1
        announces, self._announces = self._announces, True
        try:
            report = await self._repair(announces=announces)
        finally:
            ended = self._clock()
            self._again_at = ended + min(MAX_PAUSE_SECONDS, max(pause, ended - began))
        self._announces = False
        return report.left_out + report.changed + report.corrected.total()
