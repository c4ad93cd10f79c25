"""Promotion of authors with very many followers: marks the author in the followers' caches, step by step.

A step is a task that marks the author in some caches, and then replaces itself with the next step. The last step sets
the delivery mode to pull. So a promotion survives a crash, continues where it stopped, and alternates with other tasks.
"""

from dataclasses import dataclass

from graph import keys
from graph.home.cache import HomeCache
from graph.home.followers import Followers
from graph.home.pacing import UNPACED, Pace
from graph.model import MAX_NUMBER
from graph.store.commands import script
from graph.store.store import Store


@dataclass(frozen=True, slots=True)
class PromotionStep:
    """The part of a promotion for the follows with numbers up to `high`. The fields are those of a task.

    `attempt` is the delivery mode that the promotion set when it began. It contains the token of the attempt.
    """

    post: int
    author: int
    attempt: str
    high: int = MAX_NUMBER


async def add_step(store: Store, step: PromotionStep, entry: str = "", group: str = "") -> None:
    """Replace the finished task `entry` with a task for the next step, unless the finished one is no longer pending.

    Without `entry`, add the first step. One round trip.
    """
    names = [keys.FANOUTS, keys.OPEN_FANOUTS]
    words = (group, entry, step.post, step.author, step.attempt, step.high)
    await store.send([script("add_promotion_step").call(names, *words)])


class Promotion:
    """Executes one step: marks the author in the caches of at most `limit` followers, newest follows first."""

    def __init__(self, store: Store, cache: HomeCache, step: PromotionStep, limit: int, entry: str, group: str) -> None:
        self._store = store
        self._cache = cache
        self._step = step
        self._followers = Followers(store, step.author, high=step.high, limit=limit)
        self._marking: list[int] = []
        self._entry = entry
        self._group = group

    async def run(self, pace: Pace = UNPACED) -> None:
        """Mark the author, and add the next step or finish the promotion. Two round trips, and two for every chunk.

        Do nothing if the promotion is no longer the current one. If this raises StoreUnavailable, the next call
        continues where it stopped.
        """
        key, step = keys.delivery(self._step.author), self._step
        if await self._store.run("GET", key) != step.attempt:
            return
        self._followers.chunk = pace.chunk
        while viewers := self._marking or await self._followers.next():
            self._marking = viewers
            await pace.before(viewers)
            await self._cache.mark(step.author, viewers)
            self._marking = []
            pace.after(viewers)
        if self._followers.lowest is None:
            await self._store.send([script("finish_promotion").call([key], step.attempt)])
        else:
            next_step = PromotionStep(step.post, step.author, step.attempt, self._followers.lowest - 1)
            await add_step(self._store, next_step, self._entry, self._group)
