"""Fills the gaps in the search indexes of posts, newest first, and of users' names, in the background."""

import asyncio
import logging

from graph.archive.rows import Overtaken
from graph.archiver.lease import Lease
from graph.binding import Binding
from graph.errors import ArchiveUnavailable, StoreUnavailable, WrongArchive

POSTS_AT_ONCE = 2000
USERS_AT_ONCE = 500
PAUSE_SECONDS = 10.0
BUSY_SHARE = 0.5

logger = logging.getLogger("fanline.archiver")


class Indexing:
    """Indexes the posts and names that the archive held before it had indexes, or that seedings have loaded.

    A step changes the archive in one transaction, so an interruption loses at most one step. Searches also find the
    posts in gaps, but slowly.
    """

    def __init__(self, binding: Binding, lease: Lease, posts: int = POSTS_AT_ONCE) -> None:
        self._binding = binding
        self._lease = lease
        self._posts = posts

    async def run(self) -> None:
        """Close gaps while this process holds the lease, using half of the time, until cancelled.

        Continue after outages.
        """
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            more = False
            try:
                more = self._lease.is_held and await self.step()
            except (ArchiveUnavailable, StoreUnavailable) as outage:
                logger.warning("The indexing of old posts was interrupted: %s", outage.reason)
            except (Overtaken, WrongArchive):
                logger.warning("The indexing of old posts was interrupted: the archive belongs to another store")
            except Exception:
                logger.exception("The indexing of old posts failed and will be repeated")
            spent = loop.time() - started
            await asyncio.sleep(spent / BUSY_SHARE - spent if more else PAUSE_SECONDS)

    async def step(self) -> bool:
        """Index up to 500 users or, if none is left, up to 2,000 posts of a gap. Return False if nothing was left.

        Up to five transactions. Raises ArchiveUnavailable, StoreUnavailable, WrongArchive and Overtaken.
        """
        store = await self._binding.store_id()
        archive = await self._binding.archive()
        if await archive.index_names(USERS_AT_ONCE, store):
            return True
        found = await archive.unindexed(self._posts)
        if found is None:
            await archive.note_unindexed(store)
            found = await archive.unindexed(self._posts)
        if found is None:
            return False
        gap, rows = found
        await archive.close_gap(gap, rows, self._posts, store)
        return True

    async def finish(self) -> None:
        """Close all gaps."""
        while await self.step():
            pass
