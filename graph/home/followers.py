"""The followers of an author, in chunks.

Followers are ordered by the numbers of their follows, so follows and unfollows between two reads do not shift chunks.
"""

import math
from collections.abc import AsyncIterator, Sequence

from graph import keys
from graph.home.pacing import FOLLOWERS_PER_CHUNK
from graph.model import MAX_NUMBER
from graph.store.commands import Command
from graph.store.store import Store


class Followers:
    """The followers of an author whose follows have numbers in (low, high], at most `limit`, newest follows first.

    They are read in chunks of `chunk` followers. `lowest` is the number of the last follow that was read, or None if
    there are no further followers.
    """

    def __init__(
        self,
        store: Store,
        author: int,
        low: int = 0,
        high: int = MAX_NUMBER,
        limit: float = math.inf,
        chunk: int = FOLLOWERS_PER_CHUNK,
    ) -> None:
        self._store = store
        self._author = author
        self._low = low
        self._bound = str(high)
        self._left = limit
        self.chunk = chunk
        self.lowest: int | None = high

    async def next(self, commands: Sequence[Command] = ()) -> list[int]:
        """Send commands, and return the next chunk of followers, which is empty at the end. One round trip for both.

        If this raises StoreUnavailable, the next call returns the same chunk.
        """
        count = int(min(self.chunk, self._left))
        if count < 1:
            await self._store.send(commands)
            return []
        read = ("ZRANGE", keys.followers(self._author), self._bound, f"({self._low}", "BYSCORE", "REV")
        *_, rows = await self._store.send([*commands, (*read, "LIMIT", 0, count, "WITHSCORES")])
        self._left = self._left - len(rows) if len(rows) == count else 0
        self.lowest = int(rows[-1][1]) if len(rows) == count else None
        if rows:
            self._bound = f"({int(rows[-1][1])}"
        return [int(follower) for follower, _ in rows]


async def follower_chunks(store: Store, author: int) -> AsyncIterator[list[int]]:
    """Yield all followers of an author, newest follows first, in chunks of 1,000. One round trip for each chunk."""
    followers = Followers(store, author)
    while viewers := await followers.next():
        yield viewers
