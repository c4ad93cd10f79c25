"""Moves posts of suspended authors out of the public timeline and back, and fills its table in older archives."""

import asyncio
import logging

from graph.archive.rows import Overtaken
from graph.archiver.lease import Lease
from graph.binding import Binding
from graph.errors import ArchiveUnavailable, StoreUnavailable, WrongArchive

POSTS_AT_ONCE = 500
PAUSE_SECONDS = 0.5
BUSY_SHARE = 0.5

logger = logging.getLogger("fanline.archiver")


class Moves:
    """Moves posts, newest first, up to 500 per transaction. The transaction also records the progress.

    An interruption therefore loses at most one step. Steps are small and have pauses between them, because they keep
    the archiver waiting.
    """

    def __init__(self, binding: Binding, lease: Lease, posts: int = POSTS_AT_ONCE) -> None:
        self._binding = binding
        self._lease = lease
        self._posts = posts

    async def run(self) -> None:
        """Move posts while this process holds the lease, using half of the time, until cancelled.

        Continue after outages.
        """
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            more = False
            try:
                more = self._lease.is_held and await self.step()
            except (ArchiveUnavailable, StoreUnavailable) as outage:
                logger.warning("The moves of public posts were interrupted: %s", outage.reason)
            except (Overtaken, WrongArchive):
                logger.warning("The moves of public posts were interrupted: the archive belongs to another store")
            except Exception:
                logger.exception("A move of public posts failed and will be repeated")
            spent = loop.time() - started
            await asyncio.sleep(spent / BUSY_SHARE - spent if more else PAUSE_SECONDS)

    async def step(self) -> bool:
        """Move up to 500 posts. Return False if there were none to move.

        One or two queries, and a transaction to move posts. Raises ArchiveUnavailable, StoreUnavailable, WrongArchive
        and Overtaken.
        """
        archive = await self._binding.archive()
        if await archive.next_move() is None:
            return False
        return await archive.move_public_posts(self._posts, await self._binding.store_id())

    async def finish(self) -> None:
        """Finish all moves."""
        while await self.step():
            pass
