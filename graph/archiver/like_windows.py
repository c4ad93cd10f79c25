"""The hot windows of likes: the newest likes of a post or a user, which the store holds. The archive holds all likes.

A cut removes the oldest likes from a set, after checking that the archive holds them as live likes:

1. Read the kinds of their rows in the archive. If rows are missing, insert them and start over. If a later event has
   ended a like, the set changes, too: start over.
2. In one script, remove the likes from the set, raise its floor and, for a post, count the likes as archived.

Only likes that are projected and archived are cut, so the archive holds every like that is removed from the store.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import orjson

from graph import keys
from graph.archive.rows import LIKE, EventRow
from graph.binding import Binding
from graph.log.numbers import before
from graph.posts.like_pages import LIKERS, LikeList
from graph.store.commands import Command, script
from graph.store.store import Store
from graph.tuning import Tuning

if TYPE_CHECKING:
    from graph.archive.archive import Archive

LIKES_PER_CUT = 1000
ATTEMPTS = 5

Likes: TypeAlias = Sequence[tuple[int, int]]
"""Members with their numbers, in ascending order of numbers."""

logger = logging.getLogger("fanline.archiver")


class LikeWindows:
    """Trims sets of likes to the same limits as timelines. `trimmed` counts the likes removed from posts' sets."""

    def __init__(self, store: Store, binding: Binding, tuning: Tuning) -> None:
        self._store = store
        self._binding = binding
        self._tuning = tuning
        self.trimmed = 0

    async def cut_full(self, kind: LikeList, owners: Sequence[int], up_to: int) -> None:
        """Cut the sets with more than `hot_posts` + `hot_slack` likes.

        Only likes up to the number `up_to` are removed: all events up to it must be projected and archived. One round
        trip, plus two round trips and one query for every 1,000 likes removed.
        """
        for owner, floor, size, _ in await self._sizes(kind, owners, 0):
            await self._cut(kind, owner, floor, self._surplus(size), up_to)

    async def cut_old(self, kind: LikeList, owners: Sequence[int], up_to: int, now: int) -> None:
        """Cut like `cut_full`, and also remove likes older than `hot_age`, except the newest `hot_newest` of a set.

        `now` is the lowest number that an event can have at the present time, according to the store's clock.
        """
        for owner, floor, size, old in await self._sizes(kind, owners, before(now, self._tuning.hot_age)):
            aged = min(old, size - self._tuning.hot_newest)
            await self._cut(kind, owner, floor, max(self._surplus(size), aged), up_to)

    async def _sizes(self, kind: LikeList, owners: Sequence[int], oldest: int) -> list[tuple[int, int, int, int]]:
        """Return each owner with the floor of the set, the count of likes, and the count of likes below `oldest`."""
        commands: list[Command] = []
        for owner in owners:
            name = kind.key(owner)
            commands += [("ZSCORE", name, "f"), ("ZCARD", name), ("ZCOUNT", name, "-inf", f"({oldest}")]
        replies = await self._store.read(commands)
        rows = zip(owners, replies[::3], replies[1::3], replies[2::3], strict=True)
        return [
            (owner, int(floor or 0), size - (floor is not None), old - (floor is not None))
            for owner, floor, size, old in rows
        ]

    def _surplus(self, likes: int) -> int:
        return likes - self._tuning.hot_posts if likes > self._tuning.hot_posts + self._tuning.hot_slack else 0

    async def _cut(self, kind: LikeList, owner: int, floor: int, surplus: int, up_to: int) -> None:
        """Remove the archived likes among the `surplus` oldest likes of a set.

        `floor` is the archive floor that was read before the set was counted. If the floor has changed, another process
        has cut the set.
        """
        attempts = ATTEMPTS
        while surplus > 0 and attempts:
            last = min(surplus, LIKES_PER_CUT) - (not floor)
            rows = await self._store.run("ZRANGE", kind.key(owner), 0, last, "WITHSCORES")
            present = next((int(score) for member, score in rows if member == "f"), 0)
            likes = [(int(member), int(score)) for member, score in rows if member != "f" and int(score) <= up_to]
            if present != floor or not likes:
                return
            if await self._cut_likes(kind, owner, floor, likes):
                floor = likes[-1][1]
                surplus -= len(likes)
                self.trimmed += len(likes) if kind is LIKERS else 0
            else:
                attempts -= 1

    async def _cut_likes(self, kind: LikeList, owner: int, floor: int, likes: Likes) -> bool:
        """Remove likes, all above the floor, in ascending order. Return False if the cut must start over."""
        archive = await self._binding.archive()
        kinds = await archive.kinds_of([number for _, number in likes])
        missing = [like for like in likes if like[1] not in kinds]
        if missing:
            logger.warning(
                "%d likes in %s were missing from the archive; inserting them", len(missing), kind.key(owner)
            )
            await archive.insert(await self._rows(archive, kind, owner, missing), store=await self._binding.store_id())
            return False
        held = [word for like in likes if kinds[like[1]] == LIKE for word in like]
        names = [kind.key(owner), *([keys.cold_likes(owner)] if kind is LIKERS else [])]
        outcome = await self._store.run(*script("cut_likes").call(names, floor, likes[-1][1], *held))
        return bool(outcome == "cut")

    async def _rows(self, archive: "Archive", kind: LikeList, owner: int, likes: Likes) -> list[EventRow]:
        """Build rows of the archive from the members of a set. Likes of unknown posts have no body."""
        pairs = [(owner, member) if kind is LIKERS else (member, owner) for member, _ in likes]
        posts = await archive.get_many([post for post, _ in pairs])
        rows = []
        for (post, user), (_, number), found in zip(pairs, likes, posts, strict=True):
            body = None if found is None else orjson.dumps({"author": found.author}).decode()
            rows.append(EventRow(number, LIKE, user, post, body))
        return rows
