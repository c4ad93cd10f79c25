"""Fan-out: push a post into the home caches of its author's followers.

The followers are read in chunks, ordered by the numbers of their follows, so follows and unfollows during the fan-out
do not shift the chunks. A fan-out to many followers is split into tasks by ranges of these numbers, which several
workers share.
"""

import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from graph import keys
from graph.home.cache import HomeCache
from graph.model import MAX_NUMBER
from graph.store.commands import Command, Word, script
from graph.store.store import Store

FOLLOWERS_PER_CHUNK = 1000


@dataclass(frozen=True, slots=True)
class FanOut:
    """A post to push to the followers whose follows have numbers in (low, high]. The fields are those of a task."""

    post: int
    author: int
    low: int = 0
    high: int = MAX_NUMBER


class FanOuts:
    """Runs fan-outs, or adds tasks of about `followers_per_task` followers for them."""

    def __init__(self, store: Store, cache: HomeCache, followers_per_task: int) -> None:
        self._store = store
        self._cache = cache
        self._followers_per_task = followers_per_task

    async def push(self, fan_out: FanOut, limit: float = math.inf, *, include_author: bool = False) -> None:
        """Insert a post into the caches of at most `limit` followers, newest follows first.

        With `include_author`, insert the post into the author's own cache too. One round trip, and one for every 1,000
        followers.
        """
        followers = Followers(self._store, fan_out.author, fan_out.low, fan_out.high, limit)
        commands = self._cache.author_insertion(fan_out.author, fan_out.post) if include_author else []
        while viewers := await followers.next(commands):
            commands = self._cache.insertions(fan_out.author, fan_out.post, viewers)

    def needs_tasks(self, followers: int) -> bool:
        """Return True if a fan-out to this number of followers is split into tasks."""
        return followers > self._followers_per_task

    async def add_tasks(self, post: int, author: int, followers: int) -> None:
        """Add tasks for the fan-out of a post to all followers of its author. Two round trips."""
        ranks = range(self._followers_per_task - 1, followers, self._followers_per_task)
        rows = await self._store.read([("ZRANGE", keys.followers(author), r, r, "WITHSCORES") for r in ranks])
        ends = [0, *sorted({int(row[0][1]) for row in rows if row}), MAX_NUMBER]
        words: list[Word] = [word for bounds in pairwise(ends) for word in bounds]
        add = script("add_fan_out_tasks").call([keys.FANOUTS, keys.OPEN_FANOUTS], post, author, *words)
        await self._store.send([add])


class Followers:
    """The followers of an author whose follows have numbers in (low, high], at most `limit`, newest follows first."""

    def __init__(
        self, store: Store, author: int, low: int = 0, high: int = MAX_NUMBER, limit: float = math.inf
    ) -> None:
        self._store = store
        self._author = author
        self._low = low
        self._bound = str(high)
        self._left = limit

    async def next(self, commands: Sequence[Command] = ()) -> list[int]:
        """Send commands, and return the next chunk of followers, empty at the end. One round trip for both."""
        count = int(min(FOLLOWERS_PER_CHUNK, self._left))
        if count < 1:
            await self._store.send(commands)
            return []
        read = ("ZRANGE", keys.followers(self._author), self._bound, f"({self._low}", "BYSCORE", "REV")
        *_, rows = await self._store.send([*commands, (*read, "LIMIT", 0, count, "WITHSCORES")])
        self._left = self._left - len(rows) if len(rows) == count else 0
        if rows:
            self._bound = f"({int(rows[-1][1])}"
        return [int(follower) for follower, _ in rows]


async def follower_chunks(store: Store, author: int) -> AsyncIterator[list[int]]:
    """Yield all followers of an author, newest follows first, in chunks of 1,000. One round trip for each chunk."""
    followers = Followers(store, author)
    while viewers := await followers.next():
        yield viewers
