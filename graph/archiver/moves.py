"""Moves the posts of suspended authors out of the public timeline, and back, and fills the table of old archives."""

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
    """Moves posts, newest first, 500 in a transaction, which also notes the progress.

    So an interruption loses at most one step. The steps are small and have pauses, because the archiver waits for them.
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
        """Move up to 500 posts. Return whether there were any to move.

        One query, and a transaction if so. Raises ArchiveUnavailable, StoreUnavailable, WrongArchive and Overtaken.
        """
        archive = await self._binding.archive()
        if await archive.next_move() is None:
            return False
        return await archive.move_public_posts(self._posts, await self._binding.store_id())

    async def finish(self) -> None:
        """Finish all moves."""
        while await self.step():
            pass
