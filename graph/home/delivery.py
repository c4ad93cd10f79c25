"""Delivery modes: whether fan-out pushes an author's posts into home caches, or reads pull them.

The mode of each author is stored in `delivery:{author}`, so that all processes use the same mode, even if their limits
differ:

- absent: push. Fan-out inserts the author's posts into the followers' home caches.
- `promoting:<post>:<token>`: a process is marking the author in the followers' caches. Fan-out still pushes.
- `pull:<post>`, or `pull` after a rebuild: every cache is marked. Fan-out skips the author, and reads merge the
  author's timeline. `<post>` is the post that caused the promotion. A worker that projects this post again, for example
  after a failover that has lost marks, repeats the promotion.

The limit is a number of followers: infinity means push for all authors, zero means pull for all.
"""

import secrets

from graph import keys
from graph.home.cache import HomeCache
from graph.home.fan_out import FanOuts
from graph.home.followers import follower_chunks
from graph.home.promotion import PromotionStep, add_step
from graph.store.commands import script
from graph.store.store import Store

PUSH = ""
PULL = "pull"  # a mode is pull if it begins with this word


class DeliveryModes:
    """Changes the delivery modes of authors: to pull above `limit` followers, to push at half the limit."""

    def __init__(self, store: Store, cache: HomeCache, fan_outs: FanOuts, limit: float) -> None:
        self._store = store
        self._cache = cache
        self._fan_outs = fan_outs
        self._limit = limit

    async def update(self, author: int, post: int, mode: str, followers: int, *, take_over: bool) -> str:
        """Change an author's mode if the number of followers requires it, and return the mode that now applies.

        `mode` is the mode read when the post was listed. With `take_over`, also finish a promotion that the projection
        of another post began. The projection of a post calls this, so projecting the post again finishes an update
        that a crash interrupted. No round trip if nothing changes, one for a return to push; see `_promote`.
        """
        if followers > self._limit:
            if mode.startswith(PULL) and not (take_over and mode == f"{PULL}:{post}"):
                return mode
            return await self._promote(author, post, mode, followers, take_over)
        if mode and followers <= self._limit / 2:
            await self._store.run("DEL", keys.delivery(author))
            return PUSH
        return mode

    async def _promote(self, author: int, post: int, mode: str, followers: int, take_over: bool) -> str:
        """Mark the author in every follower's cache, then set the mode to pull.

        Each attempt has its own token. Only the newest attempt can finish, even if the author returned to push in
        between. 2 round trips, and 2 for every 1,000 followers. For an author with very many followers, a worker adds
        tasks instead (`graph.home.promotion`), and does not begin another promotion while such tasks are open.
        """
        if mode and not take_over and not mode.startswith(f"promoting:{post}:"):
            return mode
        in_steps = take_over and self._fan_outs.needs_tasks(followers)
        if mode and in_steps and await self._has_tasks(mode):
            return mode
        attempt = f"promoting:{post}:{secrets.token_hex(8)}"
        key = keys.delivery(author)
        if not (await self._store.send([script("begin_promotion").call([key], mode, attempt)]))[0]:
            return PUSH
        if in_steps:
            await add_step(self._store, PromotionStep(post, author, attempt))
            return attempt
        async for viewers in follower_chunks(self._store, author):
            await self._cache.mark(author, viewers)
        return str((await self._store.send([script("finish_promotion").call([key], attempt)]))[0])

    async def _has_tasks(self, attempt: str) -> bool:
        """Return True if the post of an unfinished promotion has open tasks. One round trip."""
        post = attempt.split(":")[1]
        return bool(await self._store.run("ZCOUNT", keys.OPEN_FANOUTS, post, post))
