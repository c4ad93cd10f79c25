"""Delivery modes: whether fan-out pushes an author's posts into home caches, or reads pull them.

The mode of each author is stored in `delivery:{author}`, so that processes with different limits use the same mode:

- absent: push. Fan-out inserts the author's posts into the followers' home caches.
- `promoting:<post>:<token>`: a process is marking the author in the followers' caches. Fan-out still pushes.
- `pull`: every cache is marked. Fan-out skips the author, and reads merge the author's timeline.

The limit is a number of followers: infinity means push for all authors, zero means pull for all.
"""

import secrets

from graph import keys
from graph.home.cache import HomeCache
from graph.home.fan_out import follower_chunks
from graph.store.commands import script
from graph.store.store import Store

PUSH = ""
PULL = "pull"


class DeliveryModes:
    """Changes the delivery modes of authors: to pull above `limit` followers, to push at half the limit."""

    def __init__(self, store: Store, cache: HomeCache, limit: float) -> None:
        self._store = store
        self._cache = cache
        self._limit = limit

    async def update(self, author: int, post: int, mode: str, followers: int, *, take_over: bool) -> str:
        """Change an author's mode if the number of followers requires it, and return the mode that now applies.

        `mode` is the mode read when the post was listed. With `take_over`, also finish a promotion that the projection
        of another post began. The projection of a post calls this, so projecting the post again finishes an update
        that a crash interrupted. No round trip if nothing changes, one for a return to push; see `_promote`.
        """
        if followers > self._limit:
            return mode if mode == PULL else await self._promote(author, post, mode, take_over=take_over)
        if mode and followers <= self._limit / 2:
            await self._store.run("DEL", keys.delivery(author))
            return PUSH
        return mode

    async def _promote(self, author: int, post: int, mode: str, *, take_over: bool) -> str:
        """Mark the author in every follower's cache, then set the mode to pull.

        Each attempt has its own token. Only the newest attempt can finish, even if the author returned to push in
        between. 2 round trips, and 2 for every 1,000 followers.
        """
        if mode and not take_over and not mode.startswith(f"promoting:{post}:"):
            return mode
        attempt = f"promoting:{post}:{secrets.token_hex(8)}"
        key = keys.delivery(author)
        if not (await self._store.send([script("begin_promotion").call([key], mode, attempt)]))[0]:
            return PUSH
        async for viewers in follower_chunks(self._store, author):
            await self._cache.mark(author, viewers)
        return str((await self._store.send([script("finish_promotion").call([key], attempt)]))[0])
