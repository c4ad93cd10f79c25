"""Fills the gaps in the search indexes of posts, newest first, and of users' names, in the background."""

from graph.archiver.background import BackgroundWork
from graph.archiver.lease import Lease
from graph.binding import Binding

POSTS_AT_ONCE = 2000
USERS_AT_ONCE = 500


class Indexing(BackgroundWork):
    """Indexes the posts and names that the archive held before it had indexes, or that seeding has loaded.

    Searches also find the posts in gaps, but slowly.
    """

    name = "Indexing old posts and names"
    pause_seconds = 10.0

    def __init__(self, binding: Binding, lease: Lease, posts: int = POSTS_AT_ONCE) -> None:
        super().__init__(binding, lease, posts)

    async def step(self) -> bool:
        """Index up to 500 users or, if none are left, up to 2,000 posts of a gap. Return False if nothing was left.

        Up to five transactions.
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
