"""The home cache: the newest posts of a home timeline, complete above its floor.

A viewer who has not read recently has no cache. Fan-out skips the viewer, and the next read merges the authors'
timelines and rebuilds the cache. A follow, an unfollow, a mute, an unmute, a block or an unblock deletes the cache.

A rebuild puts its token into the cache before it reads any timeline, and fan-out inserts posts into the cache from then
on. Every post is therefore merged or inserted. Deleting the cache also removes the token, and a rebuild whose token is
gone is discarded.
"""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

from graph import keys
from graph.home.merge import Which, merge_hot
from graph.paging import Window
from graph.store.commands import Command, script
from graph.store.store import Store

REBUILD_SECONDS = 60
VIEWERS_PER_SCRIPT = 250
"""The maximum number of caches that one script writes, so that it takes the store less than two milliseconds."""

CacheState: TypeAlias = Literal["absent", "rebuilding", "ready"]


@dataclass(frozen=True, slots=True)
class Slice:
    """The part of a cache that a window covers.

    `marked` are the authors whose timelines must be merged. `following` are all followed authors who are not muted, if
    the cache does not hold the whole window.
    """

    state: CacheState
    floor: int
    posts: list[int]
    marked: list[int]
    following: list[int] | None


class HomeCache:
    """The home caches of all viewers: at most `size` posts each.

    A cache expires 90% to 100% of `lifetime` after its rebuild, so that caches that were rebuilt at the same time do
    not expire at the same time. Reads do not extend the lifetime: if a failover removes a post from a cache, the post
    is missing for at most this time.
    """

    def __init__(self, store: Store, size: int, lifetime: timedelta) -> None:
        self._store = store
        self._size = size
        self._lifetime = max(1, int(lifetime.total_seconds()))

    async def slice(self, viewer: int, window: Window) -> Slice:
        """Read a window of a cache: up to `window.count` posts in paging direction. One round trip."""
        direction = "newest" if window.forward else "oldest"
        [reply] = await self._store.read(
            [
                script("home_slice").call(
                    [keys.home(viewer), keys.following(viewer), keys.muting(viewer)],
                    window.low,
                    window.high,
                    window.count,
                    direction,
                )
            ]
        )
        state, floor, posts, marks, *rest = reply
        following = [int(author) for author in rest[0]] if rest else None
        return Slice(state, int(floor), [int(post) for post in posts], [int(mark[1:]) for mark in marks], following)

    def insertions(self, author: int, post: int, viewers: Sequence[int]) -> list[Command]:
        """Return the commands that insert a post into the caches of followers who have a cache.

        A command covers up to 250 viewers; on a cluster, the caches of a command are in one slot.
        """
        return self._insertions(author, post, viewers, "")

    def author_insertion(self, author: int, post: int) -> list[Command]:
        """Return the command that inserts a post into its author's own cache, if the author has a cache."""
        return self._insertions(author, post, [author], "own")

    def _insertions(self, author: int, post: int, viewers: Sequence[int], own: str) -> list[Command]:
        return [
            script("insert").call(cache_keys(group), author, post, own, self._size) for group in self.groups(viewers)
        ]

    def groups(self, viewers: Sequence[int]) -> Iterator[Sequence[int]]:
        """Yield the viewers in groups, so that one command can write the caches of a group."""
        return self._store.together(viewers, keys.home, VIEWERS_PER_SCRIPT)

    async def mark(self, author: int, viewers: Sequence[int]) -> None:
        """Mark an author for merging in the caches of these viewers, if they have a cache. One round trip."""
        await self._store.send([script("mark").call(cache_keys(group), author) for group in self.groups(viewers)])

    async def remove(self, viewer: int, posts: Sequence[int]) -> None:
        """Remove posts from a cache. One round trip."""
        await self._store.send([("ZREM", keys.home(viewer), *posts)])

    async def rebuild(self, viewer: int) -> bool:
        """Rebuild a viewer's cache from the authors' timelines. Three round trips.

        Return False, and leave the cache as it is, if there is a cache already, the viewer is deleted, or the rebuild
        was invalidated.
        """
        token = secrets.token_hex(8)
        begin = script("begin_rebuild").call([*cache_keys([viewer]), keys.user(viewer)], token, REBUILD_SECONDS)
        following = (await self._store.send([begin]))[0]
        if following is None:
            return False
        authors = {viewer, *map(int, following)}
        [merged] = await merge_hot(self._store, [(authors, Window(self._size + 1, forward=True))], Which.PUSHED)
        newest, surplus = merged.posts[: self._size], merged.posts[self._size :]
        floor = max([*surplus, *merged.floors.values()], default=0)
        lifetime = self._lifetime - secrets.randbelow(self._lifetime // 10 + 1)
        finish = script("finish_rebuild").call(
            [keys.home(viewer)], token, floor, lifetime, self._size, len(newest), *newest, *merged.skipped
        )
        return bool((await self._store.send([finish]))[0])


def cache_keys(viewers: Sequence[int]) -> list[str]:
    """Return the keys of each viewer's cache, followed users and muted users, for a script."""
    return [key for viewer in viewers for key in (keys.home(viewer), keys.following(viewer), keys.muting(viewer))]
