"""The conversion of a store and an archive that an earlier version has written.

Format 2 of the store has a list of the quotes of each post. In format 1, the list of a post's reposts held them too. A
comparison with the archive, as in a repair, moves them: quotes that the archive has are added to the lists of quotes,
removed from the lists of reposts, and counted. The store is used meanwhile. Lists that are not converted yet show
quotes among the reposts.

The archive needs no conversion to be right, only to be fast (`graph.archive.reposts`).
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from graph import keys
from graph.archive.rows import Overtaken
from graph.archiver.lease import Lease
from graph.binding import Binding
from graph.errors import ArchiveUnavailable, StoreUnavailable, WrongArchive
from graph.log.log import Log
from graph.store.commands import script
from graph.store.store import Store

if TYPE_CHECKING:
    from graph.repair.repair import Repair

CHECK_SECONDS = 1.0
EARLIER_SECONDS = 10.0
"""How long workers of an earlier version may go on after the format was raised. They look at it every 5 seconds."""
ROWS_AT_ONCE = 500
MAX_PAUSE_SECONDS = 600.0
MAX_RUNS = 12

logger = logging.getLogger("fanline.worker")


class Conversion:
    """Converts the store and the archive, in the process that holds the lease of the archiver.

    A comparison leaves out differences that later events may have caused, so it is repeated until it finds none, at
    most twelve times. Each pause is twice as long as the one before and at least as long as the comparison took, up to
    ten minutes.
    """

    def __init__(self, store: Store, log: Log, binding: Binding, lease: Lease, repair: "Callable[[], Repair]") -> None:
        self._store = store
        self._log = log
        self._binding = binding
        self._lease = lease
        self._repair = repair
        self._from: int | None = None
        self._raised_at: float | None = None
        self._runs = 0

    async def run(self) -> None:
        """Convert everything, and return. A conversion that fails or is interrupted is continued."""
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            try:
                await self._binding.raise_format()
                if self._lease.is_held and await self._convert(EARLIER_SECONDS) and await self._clear_reposts():
                    return
            except (ArchiveUnavailable, StoreUnavailable, WrongArchive, Overtaken) as problem:
                logger.info("The data of an earlier version cannot be converted at the moment: %s", problem)
            pause = max(CHECK_SECONDS * 2**self._runs, loop.time() - started)
            await asyncio.sleep(min(MAX_PAUSE_SECONDS, pause))

    async def finish(self) -> bool:
        """Convert everything that is projected and archived, and return whether nothing is left.

        No worker of an earlier version may be running. Raises ArchiveUnavailable, StoreUnavailable, WrongArchive and
        Overtaken.
        """
        await self._binding.raise_format()
        for _ in range(MAX_RUNS):
            if await self._convert(0):
                return await self._clear_reposts(alone=True)
        return False

    async def _convert(self, seconds: float) -> bool:
        """Convert what is projected and archived in the store. Return True if nothing is left.

        The conversion ends with what has been appended `seconds` after the first call. One round trip if there is
        nothing to convert.
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
        left = await self._compare()
        if left and self._runs < MAX_RUNS:
            return False
        if left:
            logger.warning("%d differences may be left: run `fanline repair`", left)
        await self._store.run(*script("delete_if_equal").call([keys.CONVERTING], former))
        logger.warning("The store was converted from format %s", former)
        self._from, self._raised_at, self._runs = None, None, 0
        return True

    async def _compare(self) -> int:
        """Compare the lists of reposts and quotes, and return the number of differences to compare again."""
        from graph.repair.under_posts import QuoteComparison, RepostComparison

        report = await replace(self._repair(), comparisons=(RepostComparison, QuoteComparison)).run(correct=True)
        self._runs += 1
        return report.left_out + report.changed + report.corrected.total()

    async def _clear_reposts(self, *, alone: bool = False) -> bool:
        """Remove plain reposts from the archive's column of quotes, 500 in a transaction, using half of the time.

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
