"""Requests that begin and end pairs of an owner and a member (`graph.relations.pair_sets`)."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from graph import keys
from graph.commit import Commit
from graph.log.events import Event
from graph.log.log import Log
from graph.relations.latest import read_latest
from graph.relations.pair_sets import PairSet
from graph.store.commands import Command
from graph.store.store import Store


class PairChanges:
    """Begins and ends the pairs of one set. An owner has at most `limit` of them.

    `at_limit` is called with an owner who has reached the limit. It raises Rejected, or makes room by ending some
    pairs.
    """

    def __init__(
        self,
        store: Store,
        log: Log,
        commit: Commit,
        pair_set: PairSet,
        limit: int,
        at_limit: Callable[[int], Awaitable[None]],
    ) -> None:
        self._store = store
        self._log = log
        self._commit = commit
        self._pair_set = pair_set
        self._limit = limit
        self._at_limit = at_limit

    def reads(self, owner: int, member: str) -> list[Command]:
        """Return the commands whose replies `change` needs. `member` is in the form in which the store holds it."""
        key = self._pair_set.key(owner)
        return [("GET", keys.WATERMARK), ("ZCARD", key), ("ZSCORE", key, member)]

    async def change(self, owner: int, member: str, rows: Sequence[Any], *, begin: bool) -> None:
        """Begin or end a pair, unless the store and the last event say that this is already done.

        `rows` are the replies to `reads`. One round trip for the commit, and the round trips of the projection; if the
        change seems to be done already, also the round trips of `read_latest`. Concurrent calls may together exceed the
        limit.
        """
        watermark, count, score = rows
        if (score is not None) is begin:
            latest = await read_latest(self._store, self._log, self.reads(owner, member)[2:], int(watermark or 0))
            stands = latest.rows[0] is not None
            if latest.events is not None and latest.after(stands, partial(self._after, owner, member)) is begin:
                return
        elif begin and count >= self._limit:
            await self._at_limit(owner)
        await self._commit([self._pair_set.body_of(owner, member, begins=begin)])

    def _after(self, owner: int, member: str, stands: bool, event: Event) -> bool:
        """Return True if the pair exists after an event."""
        body = event.body
        is_about = isinstance(body, self._pair_set.begun | self._pair_set.ended)
        is_this = is_about and self._pair_set.pair_of(body) == (owner, member)
        return isinstance(body, self._pair_set.begun) if is_this else stands
