"""Moves posts of suspended authors out of the public timeline and back, and fills its table in older archives."""

from graph.archiver.background import BackgroundWork
from graph.archiver.lease import Lease
from graph.binding import Binding

POSTS_AT_ONCE = 500


class Moves(BackgroundWork):
    """Moves posts, newest first. The transaction of a step also records the progress.

    Steps are small and have pauses between them, because they keep the archiver waiting.
    """

    name = "Moving public posts"
    pause_seconds = 0.5

    def __init__(self, binding: Binding, lease: Lease, posts: int = POSTS_AT_ONCE) -> None:
        super().__init__(binding, lease, posts)

    async def step(self) -> bool:
        """Move up to 500 posts. Return False if there were none to move.

        One or two queries, and a transaction to move posts.
        """
        archive = await self._binding.archive()
        if await archive.next_move() is None:
            return False
        return await archive.move_public_posts(self._posts, await self._binding.store_id())
