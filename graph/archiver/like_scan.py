"""The scan of likes: removes likes that have grown old from the sets, and corrects what no event leads to."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from graph import keys
from graph.archive.rows import REDACTED
from graph.archiver.like_windows import LikeWindows
from graph.binding import Binding
from graph.like_pages import LIKED, LIKERS
from graph.model import EPOCH_MS
from graph.projections.likes import like_keys
from graph.store.commands import Command, script
from graph.store.store import Store

COUNTS_AT_ONCE = 20

logger = logging.getLogger("fanline.archiver")


@dataclass(frozen=True, slots=True)
class LikeCount:
    """A post's archive floor of likes and its number of archived likes, as the store holds them, None for no number.

    `last` is the highest number that the log had assigned when they were read.
    """

    post: int
    floor: int
    likes: str | None
    last: int = 0


class LikeScan:
    """Checks sets of likes during one pass of the scan."""

    def __init__(self, store: Store, binding: Binding, windows: LikeWindows) -> None:
        self._store = store
        self._binding = binding
        self._windows = windows
        self._doubts: list[LikeCount] = []

    async def check_users(self, users: Sequence[int], upto: int, now: int) -> None:
        """Cut the sets of posts that users like."""
        await self._windows.cut_old(LIKED, users, upto, now)

    async def check_posts(self, posts: Sequence[int], upto: int, now: int) -> None:
        """Delete the likes of deleted posts, cut the sets of the others, and note the counts that may be wrong.

        A projection that is repeated after the tombstone of the post was dropped leaves likes of a deleted post.
        """
        kinds = await (await self._binding.archive()).kinds_of(posts)
        deleted = [post for post in posts if kinds.get(post) == REDACTED]
        await self._store.send([("UNLINK", *like_keys(post)[:3]) for post in deleted])
        live = [post for post in posts if post not in {*deleted}]
        await self._windows.cut_old(LIKERS, live, upto, now)
        self._doubts += await self._doubtful(live)

    async def _doubtful(self, posts: Sequence[int]) -> list[LikeCount]:
        """Return the counts of archived likes that differ from the archive.

        They are wrong, or the archive does not hold the newest events yet.
        """
        commands: list[Command] = []
        for post in posts:
            commands += [("ZSCORE", keys.likes(post), "f"), ("GET", keys.cold_likes(post))]
        rows = await self._store.read(commands)
        counts = [
            LikeCount(post, int(floor), cold)
            for post, floor, cold in zip(posts, rows[::2], rows[1::2], strict=True)
            if floor is not None
        ]
        doubtful = await self._wrong(counts)
        if not doubtful:
            return []
        last = int(await self._store.run(*script("last_number").call([keys.LOG], EPOCH_MS)))
        return [replace(count, last=last) for count, _ in doubtful]

    async def _wrong(self, counts: Sequence[LikeCount], *, certain: bool = False) -> list[tuple[LikeCount, int]]:
        """Return the counts that differ from the archive, with the numbers of the archive.

        If `certain`, return those only for which the archive holds every event that the count may include.
        """
        archive = await self._binding.archive()
        found: list[tuple[LikeCount, int]] = []
        for start in range(0, len(counts), COUNTS_AT_ONCE):
            some = counts[start : start + COUNTS_AT_ONCE]
            expected, archived = await archive.like_counts([(count.post, count.floor) for count in some])
            found += [
                (count, likes)
                for count, likes in zip(some, expected, strict=True)
                if int(count.likes or 0) != likes and (not certain or count.last <= archived)
            ]
        return found

    async def correct_counts(self) -> None:
        """Set the noted counts that still differ from the archive, unless they have changed."""
        wrong = await self._wrong(self._doubts, certain=True)
        self._doubts.clear()
        if wrong:
            logger.warning("The counts of archived likes of %d posts are wrong and are corrected", len(wrong))
            await self._store.send([set_count(count, likes) for count, likes in wrong])


def set_count(count: LikeCount, likes: int) -> Command:
    """Return the command that sets a count of archived likes, unless it has changed."""
    names = [keys.likes(count.post), keys.cold_likes(count.post), keys.post(count.post)]
    return script("set_cold_likes").call(names, count.floor, count.likes or "", likes)
