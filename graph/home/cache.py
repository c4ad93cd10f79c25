"""The home cache: newest posts of a home timeline, complete above its floor.

A cache that does not exist belongs to a hibernated viewer: fan-out passes it by, reads merge the authors' timelines
instead, and rebuild it. An edge change simply forgets the cache. While a cache warms, posts are inserted into it
already; the warming began before anything was read, and whatever could make the merge wrong (an edge change, the
expiry) destroys its token, so every post is either in the merge or inserted.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

from graph import keys
from graph.home.merge import merge_hot
from graph.paging import Window
from graph.store.commands import Command, script
from graph.store.store import Store

WARMING_SECONDS = 60
VIEWERS_PER_SCRIPT = 1000

CacheState: TypeAlias = Literal["none", "warming", "settled"]


@dataclass(frozen=True, slots=True)
class Slice:
    """What a cache says of a window: post ids, authors to merge, and, where it cannot answer alone, who is followed."""

    state: CacheState
    floor: int
    posts: list[int]
    marked: list[int]
    following: list[int] | None


class HomeCache:
    """The home caches of all viewers: at most `size` posts each, forgotten after `lifetime` without a read."""

    def __init__(self, store: Store, size: int, lifetime: timedelta) -> None:
        self._store = store
        self._size = size
        self._lifetime = max(1, int(lifetime.total_seconds()))
        self._renew_below = max(self._lifetime - 86400, self._lifetime // 2)

    async def slice(self, viewer: int, window: Window) -> Slice:
        """Read a window of a cache: up to `window.count` posts in paging direction. One round trip."""
        direction = "newest" if window.forward else "oldest"
        [reply] = await self._store.read(
            [
                script("home_slice").call(
                    [keys.home(viewer), keys.following(viewer)],
                    window.low,
                    window.high,
                    window.count,
                    direction,
                    self._lifetime,
                    self._renew_below,
                )
            ]
        )
        state, floor, posts, marks, *rest = reply
        following = [int(author) for author in rest[0]] if rest else None
        return Slice(state, int(floor), [int(post) for post in posts], [int(mark[1:]) for mark in marks], following)

    def insertion(self, author: int, post: int, viewers: Sequence[int]) -> list[Command]:
        """Make the commands that insert a post into the caches of followers, where these exist.

        On one server a script serves a thousand viewers, on a cluster those of one slot.
        """
        return self._insertion(author, post, viewers, "")

    def own_insertion(self, author: int, post: int) -> list[Command]:
        """Make the command that inserts a post into its author's own cache, if there is one."""
        return self._insertion(author, post, [author], "own")

    def _insertion(self, author: int, post: int, viewers: Sequence[int], own: str) -> list[Command]:
        return [
            script("insert").call(cache_keys(group), author, post, own, self._size)
            for group in self._store.together(viewers, keys.home, VIEWERS_PER_SCRIPT)
        ]

    async def mark(self, author: int, viewers: Sequence[int]) -> None:
        """Mark an author as merged at read in the caches of these viewers, where they exist. One round trip."""
        groups = self._store.together(viewers, keys.home, VIEWERS_PER_SCRIPT)
        await self._store.send([script("mark").call(cache_keys(group), author) for group in groups])

    async def drop(self, viewer: int, posts: Sequence[int]) -> None:
        """Take deleted posts out of a cache. One round trip."""
        await self._store.send([("ZREM", keys.home(viewer), *posts)])

    async def rebuild(self, viewer: int) -> bool:
        """Build a viewer's cache from the authors' timelines; False if there is one or something came between.

        Three round trips.
        """
        token = secrets.token_hex(8)
        following = (
            await self._store.send(
                [script("warm").call([keys.home(viewer), keys.following(viewer)], token, WARMING_SECONDS)]
            )
        )[0]
        if following is None:
            return False
        authors = {viewer, *map(int, following)}
        [merged] = await merge_hot(self._store, [(authors, Window(self._size + 1, forward=True))], pushed=True)
        newest, surplus = merged.posts[: self._size], merged.posts[self._size :]
        floor = max([*surplus, *merged.floors.values()], default=0)
        settle = script("settle_home").call(
            [keys.home(viewer)], token, floor, self._lifetime, self._size, len(newest), *newest, *merged.left_out
        )
        return bool((await self._store.send([settle]))[0])


def cache_keys(viewers: Sequence[int]) -> list[str]:
    """Name each viewer's cache and the set of whom they follow."""
    return [key for viewer in viewers for key in (keys.home(viewer), keys.following(viewer))]
