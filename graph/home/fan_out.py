"""Fan-out: pushes a post into the home caches of its author's followers.

A fan-out to many followers is split into tasks by ranges of the numbers of their follows, so that several workers can
share the work.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from graph import keys
from graph.chunks import chunks
from graph.errors import StoreUnavailable
from graph.home.cache import HomeCache
from graph.home.followers import Followers
from graph.home.pacing import UNPACED, Pace
from graph.home.promotion import Promotion, PromotionStep
from graph.model import MAX_NUMBER
from graph.store.commands import Word, script
from graph.store.store import Store

SHARD_SECONDS = 0.5
"""How long an insertion waits for its shard after a shard has failed to answer the worker or this fan-out."""


class FanOutInterrupted(StoreUnavailable):
    """The post is in the author's own cache, but an outage or the time limit interrupted the fan-out to followers."""


@dataclass(frozen=True, slots=True)
class FanOut:
    """A post to push to the followers whose follows have numbers in (low, high]. The fields are those of a task."""

    post: int
    author: int
    low: int = 0
    high: int = MAX_NUMBER


class FanOuts:
    """Runs fan-outs, or splits them into tasks of about `followers_per_task` followers each."""

    def __init__(self, store: Store, cache: HomeCache, followers_per_task: int) -> None:
        self._store = store
        self._cache = cache
        self._followers_per_task = followers_per_task

    def work(self, entry: str, words: Sequence[str], group: str) -> Callable[[Pace], Awaitable[None]]:
        """Return a function that executes a task. After an outage, call the same function again to continue the task.

        `group` is the consumer group that the task is delivered to. Raises ValueError and TypeError for a damaged task.
        """
        fields = dict(zip(words[::2], words[1::2], strict=True))
        attempt = fields.pop("attempt", None)
        numbers = {name: int(value) for name, value in fields.items()}
        if attempt is None:
            return Delivery(self._store, self._cache, FanOut(**numbers)).run
        step = PromotionStep(**numbers, attempt=attempt)
        return Promotion(self._store, self._cache, step, self._followers_per_task, entry, group).run

    async def push(
        self, fan_out: FanOut, limit: float = math.inf, pace: Pace = UNPACED, seconds: float | None = None
    ) -> None:
        """Insert a post into the caches of its author and of at most `limit` followers, newest follows first.

        Raises StoreUnavailable if the author's shard does not answer. Raises FanOutInterrupted if an outage happens
        later, or if the fan-out to the followers takes more than `seconds`. One round trip, and one for every chunk of
        followers.
        """
        followers = Followers(self._store, fan_out.author, fan_out.low, fan_out.high, limit, pace.chunk)
        viewers = await followers.next(self._cache.author_insertion(fan_out.author, fan_out.post))
        try:
            async with asyncio.timeout(seconds):
                while viewers:
                    await pace.before(viewers)
                    further = await followers.next(self._cache.insertions(fan_out.author, fan_out.post, viewers))
                    pace.after(viewers)
                    viewers = further
        except (StoreUnavailable, TimeoutError) as outage:
            raise FanOutInterrupted(getattr(outage, "reason", "the time limit has passed")) from outage

    def needs_tasks(self, followers: int) -> bool:
        """Return True if a fan-out to this number of followers is split into tasks."""
        return followers > self._followers_per_task

    async def add_tasks(self, post: int, author: int, followers: int) -> None:
        """Add tasks for the fan-out of a post to all followers of its author. Two round trips.

        Add nothing if the post's tasks were added before and the watermark has not passed the post.
        """
        ranks = range(self._followers_per_task - 1, followers, self._followers_per_task)
        rows = await self._store.read([("ZRANGE", keys.followers(author), r, r, "WITHSCORES") for r in ranks])
        ends = [0, *sorted({int(row[0][1]) for row in rows if row}), MAX_NUMBER]
        words: list[Word] = [word for bounds in pairwise(ends) for word in bounds]
        names = [keys.FANOUTS, keys.OPEN_FANOUTS, keys.ADDED_FANOUTS]
        await self._store.send([script("add_fan_out_tasks").call(names, post, author, *words)])


class Delivery:
    """Executes a task, and keeps its progress: after an outage, `run` continues where it stopped.

    A shard that does not answer delays only its own followers. The others get the post.
    """

    def __init__(self, store: Store, cache: HomeCache, task: FanOut) -> None:
        self._store = store
        self._cache = cache
        self._task = task
        self._followers = Followers(store, task.author, task.low, task.high)
        self._unreached: list[int] = []
        self._meets_outage = False

    async def run(self, pace: Pace = UNPACED) -> None:
        """Push the post to the followers who do not have it yet. Two round trips for every chunk.

        Raises StoreUnavailable if some followers cannot be reached.
        """
        self._followers.chunk = pace.chunk
        again, self._unreached, self._meets_outage = self._unreached, [], pace.meets_outage
        for viewers in chunks(again, pace.chunk):
            await self._insert(viewers, pace)
        while viewers := await self._followers.next():
            await self._insert(viewers, pace)
        if self._unreached:
            raise StoreUnavailable(f"{len(self._unreached):,} followers cannot be reached")

    async def _insert(self, viewers: Sequence[int], pace: Pace) -> None:
        """Insert the post into the caches of a chunk of followers, and note the followers who cannot be reached."""
        await pace.before(viewers)
        if not self._meets_outage:
            try:
                await self._store.send(self._cache.insertions(self._task.author, self._task.post, viewers))
            except StoreUnavailable:
                self._meets_outage = True
        if self._meets_outage:
            unreached = await self._insert_each(viewers)
            self._unreached += unreached
            if len(unreached) == len(viewers):
                return
        pace.after(viewers)

    async def _insert_each(self, viewers: Sequence[int]) -> list[int]:
        """Send each insertion separately, and return the viewers whose shard does not answer.

        Up to one round trip for each insertion, all sent concurrently. Insertions without an answer are abandoned after
        half a second, but may still be applied.
        """
        groups = [list(group) for group in self._cache.groups(viewers)]
        author, post = self._task.author, self._task.post
        sent = [
            asyncio.ensure_future(self._store.send(self._cache.insertions(author, post, group))) for group in groups
        ]
        try:
            await asyncio.wait(sent, timeout=SHARD_SECONDS)
        finally:
            for each in sent:
                each.cancel()
            outcomes = await asyncio.gather(*sent, return_exceptions=True)
        unreached: list[int] = []
        for group, outcome in zip(groups, outcomes, strict=True):
            if isinstance(outcome, StoreUnavailable | asyncio.CancelledError):
                unreached += group
            elif isinstance(outcome, BaseException):
                raise outcome
        return unreached
