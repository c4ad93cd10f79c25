"""Finds the store's counts of archived likes that differ from the archive."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from graph import keys
from graph.binding import Binding
from graph.chunks import chunks
from graph.model import EPOCH_MS
from graph.store.commands import Command, script
from graph.store.store import Store

COUNTS_AT_ONCE = 20


@dataclass(frozen=True, slots=True)
class LikeCount:
    """A post's archive floor of likes and its count of archived likes, as the store holds them.

    `likes` is None if the store has no count. `last` is the highest event number that the log had assigned when the
    values were read.
    """

    post: int
    floor: int
    likes: str | None
    last: int = 0


class LikeCounts:
    """Compares the counts of archived likes with the archive."""

    def __init__(self, store: Store, binding: Binding) -> None:
        self._store = store
        self._binding = binding

    async def suspects(self, posts: Sequence[int]) -> list[LikeCount]:
        """Return the counts of archived likes that differ from the archive.

        Such counts are wrong, or the archive does not hold the newest events yet.
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
        suspects = await self.wrong(counts)
        if not suspects:
            return []
        last = int(await self._store.run(*script("last_number").call([keys.LOG], EPOCH_MS)))
        return [replace(count, last=last) for count, _ in suspects]

    async def wrong(self, counts: Sequence[LikeCount], *, certain: bool = False) -> list[tuple[LikeCount, int]]:
        """Return the counts that differ from the archive, each with the count according to the archive.

        If `certain`, return only counts for which the archive holds every event that they may include.
        """
        archive = await self._binding.archive()
        found: list[tuple[LikeCount, int]] = []
        for some in chunks(counts, COUNTS_AT_ONCE):
            expected, archived = await archive.like_counts([(count.post, count.floor) for count in some])
            found += [
                (count, likes)
                for count, likes in zip(some, expected, strict=True)
                if int(count.likes or 0) != likes and (not certain or count.last <= archived)
            ]
        return found


def set_count(count: LikeCount, likes: int) -> Command:
    """Return the command that sets a count of archived likes, unless it has changed."""
    names = [keys.likes(count.post), keys.cold_likes(count.post), keys.post(count.post)]
    return script("set_cold_likes").call(names, count.floor, count.likes or "", likes)
