"""Healing after a failover in which the log lost events: other shards still hold keys derived from those events.

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
from graph.worker.repeated_repair import RepeatedRepair

CHECK_SECONDS = 1.0

logger = logging.getLogger("fanline.worker")


class Repairing(Protocol):
    """Repairs the store, and returns the report. See `Repair.run`."""

    def __call__(self, *, announces: bool) -> Awaitable[RepairReport]: ...  # noqa: D102


class Healing:
    """Repairs the store after lost events, in the process that holds the lease of the archiver.

    A repair compares only what the archive covers, so it begins when the archive has passed the lost events. It is
    repeated until it has nothing to correct.
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
        self._repetition = RepeatedRepair(clock)
        self._begin(0)

    def _begin(self, lost: int) -> None:
        self._lost = lost
        self._repetition.restart()
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
            except Exception:
                logger.exception("A repair after lost events failed and will be retried")

    async def check(self) -> bool:
        """Repair the store once if events were lost and later ones are archived. Return True after the last repair.

        Return False if no events were lost, or if another repair must follow. One round trip while no events are lost,
        and during a pause.
        """
        lost = await self._losses.highest()
        if lost != self._lost:
            self._begin(lost)
        if not lost or not self._repetition.is_due:
            return False
        await self._log.watermark()
        if self._log.discardable <= lost:
            return False
        logger.warning("A failover lost events up to %d; the store is being compared with the archive", lost)
        if not await self._repetition.run(self._run_repair):
            return False
        await self._losses.forget(lost)
        logger.warning("The store was repaired")
        return True

    async def _run_repair(self) -> RepairReport:
        """Repair once. A repair that fails may have corrected something; the next repair announces this."""
        announces, self._announces = self._announces, True
        report = await self._repair(announces=announces)
        self._announces = False
        return report
