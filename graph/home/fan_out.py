"""Fan-out: bringing a post to the home caches of its author's followers.

A follower list is walked by the numbers of the follows, in chunks, so that follows and unfollows meanwhile shift
nothing and no list is ever loaded whole. A long list is cut into ranges of these numbers, the tasks of a fan-out,
which several workers share.
"""

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
    """A post to bring to the followers whose follows have numbers in (low, high]."""

    post: int
    author: int
    low: int = 0
    high: int = MAX_NUMBER


class FanOuts:
    """Carries fan-outs out, or opens tasks for them. A task is of about `followers_per_task` followers."""

    def __init__(self, store: Store, cache: HomeCache, followers_per_task: int) -> None:
        self._store = store
        self._cache = cache
        self._followers_per_task = followers_per_task

    async def push(self, fan_out: FanOut, most: float = float("inf"), *, own: bool = False) -> None:
        """Insert a post into the followers' caches, newest follows first, at most so many.

        With `own`, the author's own cache comes first. One round trip for every 1,000 followers and one more.
        """
        followers = Followers(self._store, fan_out.author, fan_out.low, fan_out.high, most)
        commands = self._cache.own_insertion(fan_out.author, fan_out.post) if own else []
        while viewers := await followers.next(commands):
            commands = self._cache.insertion(fan_out.author, fan_out.post, viewers)

    def is_long(self, followers: int) -> bool:
        """Tell whether a fan-out to so many followers is cut into tasks."""
        return followers > self._followers_per_task

    async def open(self, post: int, author: int, followers: int) -> None:
        """Open tasks for all followers of an author; several workers may share them. Two round trips."""
        ranks = range(self._followers_per_task - 1, followers, self._followers_per_task)
        rows = await self._store.read([("ZRANGE", keys.followers(author), r, r, "WITHSCORES") for r in ranks])
        ends = [0, *sorted({int(row[0][1]) for row in rows if row}), MAX_NUMBER]
        words: list[Word] = [word for bounds in pairwise(ends) for word in bounds]
        await self._store.send([script("open_fan_outs").call([keys.FANOUTS, keys.OPEN_FANOUTS], post, author, *words)])


class Followers:
    """A walk through an author's followers, newest follow first, which shares its trips with other commands."""

    def __init__(
        self, store: Store, author: int, low: int = 0, high: int = MAX_NUMBER, most: float = float("inf")
    ) -> None:
        self._store = store
        self._author = author
        self._low = low
        self._bound = str(high)
        self._left = most

    async def next(self, commands: Sequence[Command] = ()) -> list[int]:
        """Send commands, and read the next chunk of followers in the same round trip; empty at the end."""
        count = int(min(FOLLOWERS_PER_CHUNK, self._left))
        if count < 1:
            await self._store.send(commands)
            return []
        walk = ("ZRANGE", keys.followers(self._author), self._bound, f"({self._low}", "BYSCORE", "REV")
        *_, rows = await self._store.send([*commands, (*walk, "LIMIT", 0, count, "WITHSCORES")])
        self._left = self._left - len(rows) if len(rows) == count else 0
        if rows:
            self._bound = f"({int(rows[-1][1])}"
        return [int(follower) for follower, _ in rows]


async def follower_chunks(store: Store, author: int) -> AsyncIterator[list[int]]:
    """Yield an author's followers, newest follow first, in chunks of at most 1,000; one round trip each."""
    followers = Followers(store, author)
    while viewers := await followers.next():
        yield viewers
