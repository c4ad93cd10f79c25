"""The scan of likes: removes old likes from the store, and corrects errors there that no event would correct."""

import logging
from collections.abc import Sequence

from graph.archive.rows import REDACTED
from graph.archiver.like_counts import LikeCount, LikeCounts, set_count
from graph.archiver.like_windows import LikeWindows
from graph.binding import Binding
from graph.posts.like_pages import LIKED, LIKERS
from graph.projections.likes import like_keys
from graph.store.store import Store

logger = logging.getLogger("fanline.archiver")


class LikeScan:
    """Checks sets of likes during one pass of the scan."""

    def __init__(self, store: Store, binding: Binding, windows: LikeWindows) -> None:
        self._store = store
        self._binding = binding
        self._windows = windows
        self._counts = LikeCounts(store, binding)
        self._suspects: list[LikeCount] = []

    async def check_users(self, users: Sequence[int], up_to: int, now: int) -> None:
        """Cut the sets of liked posts of users."""
        await self._windows.cut_old(LIKED, users, up_to, now)

    async def check_posts(self, posts: Sequence[int], up_to: int, now: int) -> None:
        """Delete the likes of deleted posts, cut the sets of the others, and remember the counts that may be wrong.

        A deleted post can have likes if a projection was repeated after the tombstone of the post was dropped.
        """
        kinds = await (await self._binding.archive()).kinds_of(posts)
        deleted = [post for post in posts if kinds.get(post) == REDACTED]
        await self._store.send([("UNLINK", *like_keys(post)[:3]) for post in deleted])
        live = [post for post in posts if post not in {*deleted}]
        await self._windows.cut_old(LIKERS, live, up_to, now)
        self._suspects += await self._counts.suspects(live)

    async def correct_counts(self) -> None:
        """Correct the remembered counts that still differ from the archive, unless they have changed."""
        wrong = await self._counts.wrong(self._suspects, certain=True)
        self._suspects.clear()
        if wrong:
            logger.warning("The counts of archived likes of %d posts are wrong and are being corrected", len(wrong))
            await self._store.send([set_count(count, likes) for count, likes in wrong])
