"""Background work on the archive, in small steps."""

import asyncio
import logging
import time
from abc import ABC, abstractmethod

from graph.archive.rows import ArchiveChanged
from graph.archiver.lease import Lease
from graph.binding import Binding
from graph.errors import ArchiveUnavailable, StoreUnavailable, WrongArchive

BUSY_SHARE = 0.5

logger = logging.getLogger("fanline.archiver")


class BackgroundWork(ABC):
    """Work in steps of one or a few transactions each, so that an interruption loses at most one step.

    A step handles up to `posts` posts. `name` is the subject of log messages about the work, and `pause_seconds` is the
    pause before the process looks for work again when none is left.
    """

    name: str
    pause_seconds: float

    def __init__(self, binding: Binding, lease: Lease, posts: int) -> None:
        self._binding = binding
        self._lease = lease
        self._posts = posts

    async def run(self) -> None:
        """Do the work while this process holds the lease, using half of the time, until cancelled.

        Continue after outages.
        """
        while True:
            started = time.monotonic()
            more = False
            try:
                more = self._lease.is_held and await self.step()
            except (ArchiveUnavailable, StoreUnavailable) as outage:
                logger.warning("%s was interrupted: %s", self.name, outage.reason)
            except (ArchiveChanged, WrongArchive):
                logger.warning("%s was interrupted: the archive belongs to another store", self.name)
            except Exception:
                logger.exception("%s failed and will be retried", self.name)
            spent = time.monotonic() - started
            await asyncio.sleep(spent / BUSY_SHARE - spent if more else self.pause_seconds)

    @abstractmethod
    async def step(self) -> bool:
        """Do one step. Return False if nothing was left to do.

        Raises ArchiveUnavailable, StoreUnavailable, WrongArchive and ArchiveChanged.
        """

    async def finish(self) -> None:
        """Do all remaining steps."""
        while await self.step():
            pass
