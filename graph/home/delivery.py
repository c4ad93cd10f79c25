"""Reach: whether fan-out pushes an author's posts into followers' caches, or reads merge them.

The state belongs to the author and is kept in the store, so that processes with different limits cannot disagree:
absent (pushed), growing, or large (merged). Push is a limit of infinity, pull a limit of zero, hybrid a number of
followers between.
"""

import secrets

from graph import keys
from graph.home.cache import HomeCache
from graph.home.fan_out import follower_chunks
from graph.store.commands import script
from graph.store.store import Store

LARGE = "large"


class Reach:
    """Decides between push and merge for each author, by the number of followers against `limit`."""

    def __init__(self, store: Store, cache: HomeCache, limit: float) -> None:
        self._store = store
        self._cache = cache
        self._limit = limit

    async def settle(self, author: int, post: int, reach: str, followers: int, *, take_over: bool) -> str:
        """Bring an author's reach in line with the limit, while projecting a post; give the reach that holds now.

        `take_over` finishes what another projection has begun, too: that is the worker's business.
        Part of the projection of the post, so that a crash half way is mended by projecting it again.
        """
        if followers > self._limit:
            return reach if reach == LARGE else await self._grow(author, post, reach, take_over=take_over)
        if reach and followers <= self._limit / 2:
            await self._store.run("DEL", keys.reach(author))
            return ""
        return reach

    async def _grow(self, author: int, post: int, reach: str, *, take_over: bool) -> str:
        """Mark the author in every follower's cache; then, unless overtaken, fan-out may leave the author out.

        Whoever grows holds a token of its own, so that of several growings, and of growings before and after a
        shrink, only the last to begin can finish. Two round trips, and two for every 1,000 followers.
        """
        if reach and not take_over and not reach.startswith(f"growing:{post}:"):
            return reach
        mine = f"growing:{post}:{secrets.token_hex(8)}"
        begin, finish = script("begin_growing"), script("become_large")
        if not (await self._store.send([begin.call([keys.reach(author)], reach, mine)]))[0]:
            return ""
        async for viewers in follower_chunks(self._store, author):
            await self._cache.mark(author, viewers)
        return str((await self._store.send([finish.call([keys.reach(author)], mine)]))[0])
