"""The home cache: newest posts of a home timeline, complete above its floor.

A cache that does not exist belongs to a hibernated viewer: fan-out passes it by, reads merge the authors' timelines
instead, and rebuild it. An edge change simply forgets the cache. While a cache warms, posts are inserted into it
already; the warming began before anything was read, and whatever could make the merge wrong (an edge change, the
expiry) destroys its token, so every post is either in the merge or inserted.
"""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

from graph import keys
from graph.paging import Window
from graph.store import Command, Store, script

WARMING_SECONDS = 60
AUTHORS_PER_TRIP = 500
LEAST_POSTS_PER_AUTHOR = 20

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

    async def insert(self, author: int, post: int, viewers: Iterable[int]) -> None:
        """Insert a post into these viewers' caches, where one exists and the author is followed. One round trip."""
        insert = script("insert")
        await self._store.send(
            [
                insert.call(
                    [keys.home(viewer), keys.following(viewer)],
                    author,
                    post,
                    "own" if viewer == author else "",
                    self._size,
                )
                for viewer in viewers
            ]
        )

    async def mark(self, author: int, viewers: Iterable[int]) -> None:
        """Mark an author as merged at read in the caches of these viewers, where they exist. One round trip."""
        mark = script("mark")
        await self._store.send([mark.call([keys.home(viewer), keys.following(viewer)], author) for viewer in viewers])

    async def drop(self, viewer: int, posts: Sequence[int]) -> None:
        """Take deleted posts out of a cache. One round trip."""
        await self._store.read([("ZREM", keys.home(viewer), *posts)])

    async def rebuild(self, viewer: int) -> bool:
        """Build a viewer's cache from the authors' timelines; False if there is one or something came between.

        Two round trips, and one for every 500 followed authors.
        """
        token = secrets.token_hex(8)
        following = (
            await self._store.send(
                [script("warm").call([keys.home(viewer), keys.following(viewer)], token, WARMING_SECONDS)]
            )
        )[0]
        if following is None:
            return False
        authors = sorted({viewer, *map(int, following)})
        posts, floor, marked = await self._merge(authors)
        newest = sorted(posts, reverse=True)
        if len(newest) > self._size:
            floor = max(floor, newest[self._size])
            newest = newest[: self._size]
        settle = script("settle_home").call(
            [keys.home(viewer)], token, floor, self._lifetime, self._size, len(newest), *newest, *marked
        )
        return bool((await self._store.send([settle]))[0])

    async def _merge(self, authors: Sequence[int]) -> tuple[set[int], int, list[int]]:
        """Read the newest posts of authors: their ids, the floor above which they are complete, the authors to mark."""
        each = min(self._size, max(LEAST_POSTS_PER_AUTHOR, 4 * self._size // len(authors)))
        posts: set[int] = set()
        marked: list[int] = []
        floor = 0
        for start in range(0, len(authors), AUTHORS_PER_TRIP):
            some = authors[start : start + AUTHORS_PER_TRIP]
            commands: list[Command] = []
            for author in some:
                commands += [
                    ("GET", keys.reach(author)),
                    ("ZRANGE", keys.posts(author), 0, each - 1, "REV", "WITHSCORES"),
                ]
            replies = await self._store.send(commands)
            for author, reach, rows in zip(some, replies[::2], replies[1::2], strict=True):
                if reach:
                    marked.append(author)
                    continue
                lowest = 0
                for member, score in rows:
                    if member == "f":
                        lowest = int(score)
                        break
                    posts.add(int(member))
                    lowest = int(member) - 1
                floor = max(floor, lowest)
        return posts, floor, marked
