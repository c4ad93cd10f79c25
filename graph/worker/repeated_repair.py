"""The repetition of a repair until it has nothing to correct."""

import logging
import time
from collections.abc import Awaitable, Callable

from graph.repair.report import RepairReport

FIRST_PAUSE_SECONDS = 1.0
MAX_PAUSE_SECONDS = 600.0
MAX_RUNS = 12  # within half an hour, if each one is fast

logger = logging.getLogger("fanline.worker")


class RepeatedRepair:
    """Repeats a repair until it has nothing to correct, or has run twelve times without failing.

    A repair leaves differences that later events may have caused, and differences that change before it corrects them.
    An event that it adds to the archive can reveal another difference. Each pause is twice as long as the one before
    and at least as long as the repair took, up to ten minutes. `clock` returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.restart()

    def restart(self) -> None:
        """Start again with the first run, without a pause."""
        self._runs, self._pause, self._again_at = 0, FIRST_PAUSE_SECONDS, 0.0

    @property
    def is_due(self) -> bool:
        """True if the pause after the last run is over."""
        return self._clock() >= self._again_at

    async def run(self, repair: Callable[[], Awaitable[RepairReport]]) -> bool:
        """Repair once, and begin a pause, even if the repair fails. Return True if this was the last run."""
        began = self._clock()
        try:
            report = await repair()
        finally:
            ended = self._clock()
            self._again_at = ended + min(MAX_PAUSE_SECONDS, max(self._pause, ended - began))
            self._pause = min(MAX_PAUSE_SECONDS, 2 * self._pause)
        self._runs += 1
        left = report.left_out + report.changed + report.corrected.total()
        if left and self._runs < MAX_RUNS:
            logger.warning("%d differences were corrected or left, and are being compared again", left)
            return False
        if left:
            logger.warning("%d differences may be left: run `fanline repair`", left)
        return True
