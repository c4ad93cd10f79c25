"""The conversion of a store and an archive that were written by an earlier version.

Format 2 of the store has a list of the quotes of each post. In format 1, the list of a post's reposts held them too. A
comparison with the archive, as in a repair, moves them: quotes that the archive has are added to the lists of quotes,
removed from the lists of reposts, and counted. The store stays in use in the meantime. Lists that are not converted yet
show quotes among the reposts.

The archive needs no conversion to be correct, only to be fast (`graph.archive.reposts`).
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from graph import keys
from graph.archive.rows import ArchiveChanged
from graph.archiver.lease import Lease
from graph.binding import Binding
from graph.errors import ArchiveUnavailable, StoreUnavailable, WrongArchive
from graph.log.log import Log
from graph.store.commands import script
from graph.store.store import Store
from graph.worker.repeated_repair import MAX_RUNS, RepeatedRepair

if TYPE_CHECKING:
    from graph.repair.repair import Repair
    from graph.repair.report import RepairReport

CHECK_SECONDS = 1.0
EARLIER_SECONDS = 10.0
"""How long workers of an earlier version may keep running after the format was raised. They check every 5 seconds."""
ROWS_AT_ONCE = 500

logger = logging.getLogger("fanline.worker")


class Conversion:
    """Converts the store and the archive, in the process that holds the lease of the archiver.

    The comparison is a repair of some lists, and is repeated until it has nothing to correct.
    """

    def __init__(self, store: Store, log: Log, binding: Binding, lease: Lease, repair: "Callable[[], Repair]") -> None:
        self._store = store
        self._log = log
        self._binding = binding
        self._lease = lease
        self._repair = repair
        self._from: int | None = None
        self._raised_at: float | None = None
        self._repetition = RepeatedRepair()

    async def run(self) -> None:
        """Convert everything, and return. A conversion that fails or is interrupted is resumed."""
        while True:
            try:
                await self._binding.raise_format()
                is_due = self._lease.is_held and self._repetition.is_due
                if is_due and await self._convert(EARLIER_SECONDS) and await self._clear_reposts():
                    return
            except (ArchiveUnavailable, StoreUnavailable, WrongArchive, ArchiveChanged) as problem:
                logger.info("The data of an earlier version cannot be converted at the moment: %s", problem)
            except Exception:
                logger.exception("The conversion of the data of an earlier version failed and will be retried")
            await asyncio.sleep(CHECK_SECONDS)

    async def finish(self) -> bool:
        """Convert all data that is projected and archived. Return True if nothing is left to convert.

        No worker of an earlier version may be running. Raises ArchiveUnavailable, StoreUnavailable, WrongArchive and
        ArchiveChanged.
        """
        await self._binding.raise_format()
        for _ in range(MAX_RUNS):
            if await self._convert(0):
                return await self._clear_reposts(alone=True)
        return False

    async def _convert(self, seconds: float) -> bool:
        """Convert the projected and archived data of the store. Return True if nothing is left to convert.

        The conversion starts `seconds` after the first call, and covers all events appended before it starts. One round
        trip if there is nothing to convert.
        """
        former = await self._store.run("GET", keys.CONVERTING)
        if former is None:
            return True
        now = asyncio.get_running_loop().time()
        self._raised_at = self._raised_at or now
        if now < self._raised_at + seconds:
            return False
        if self._from is None:
            self._from = await self._log.last()
        await self._log.watermark()
        if self._log.discardable < self._from:
            return False  # the comparison does not see posts that are not archived
        if not await self._repetition.run(self._compare):
            return False
        await self._store.run(*script("delete_if_equal").call([keys.CONVERTING], former))
        logger.warning("The store was converted from format %s", former)
        self._from = self._raised_at = None
        self._repetition.restart()
        return True

    async def _compare(self) -> "RepairReport":
        """Compare the lists of reposts and quotes with the archive, and correct them."""
        from graph.repair.under_posts import QuoteComparison, RepostComparison

        return await replace(self._repair(), comparisons=(RepostComparison, QuoteComparison)).run(correct=True)

    async def _clear_reposts(self, *, alone: bool = False) -> bool:
        """Remove plain reposts from the archive's column of quotes, 500 per transaction, pausing as long as each takes.

        Return True if none is left. Unless this process is `alone`, stop when it loses the lease. One query if there is
        nothing to remove.
        """
        loop = asyncio.get_running_loop()
        archive, store = await self._binding.archive(), await self._binding.store_id()
        started = loop.time()
        while await archive.clear_reposts(ROWS_AT_ONCE, store):
            if not (alone or self._lease.is_held):
                return False
            await asyncio.sleep(loop.time() - started)
            started = loop.time()
        return True
