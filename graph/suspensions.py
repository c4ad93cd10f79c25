"""The suspended users, in the memory of each process.

A suspension hides everything of a user at once, however much there is, so nothing is written to posts or followers. All
processes read one hash of suspended users, and keep it: a request only asks whether the hash has another version, in
the round trip of its other reads. So a suspension is in effect everywhere when its event is projected, and costs no
round trip.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from graph import keys
from graph.errors import StoreUnavailable
from graph.store.commands import Command, script
from graph.store.store import Store

ANSWER_SECONDS = 0.5
"""How long a request waits for the shard with the suspensions, if the process knows earlier ones."""
SILENT_SECONDS = 1.0
"""How long requests do not wait after one got no answer."""
FEW = 1000
"""The most suspensions that each request reads by itself when they change. The requests of a process read more once."""
UNKNOWN = "-"
"""The version of a process that has not read the suspensions yet."""

Suspended: TypeAlias = frozenset[int]


class Suspensions:
    """Knows which users are suspended."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._users: Suspended = frozenset()
        self._version = UNKNOWN
        self._silent_until = 0.0
        self._loading: asyncio.Future[Suspended] | None = None

    @property
    def known(self) -> Suspended:
        """The suspended users, as this process has read them last."""
        return self._users

    def note(self, user: int, *, suspended: bool) -> None:
        """Note the suspension of a user, or its end, before it is projected."""
        self._users = self._users | {user} if suspended else self._users - {user}

    def ask(self) -> "asyncio.Future[Suspended | None]":
        """Start to read the suspended users, in the round trip of other reads of the same ticks; see `users`."""
        names = [keys.SUSPENDED, keys.SUSPENDED_VERSION]
        return self._store.ask([script("read_suspended").call(names, self._version, FEW)], self._note_change)

    async def users(self, asked: "asyncio.Future[Suspended | None]") -> Suspended:
        """Return the suspended users that `ask` reads.

        No round trip but that one, and one more if they have changed and are very many. If their shard does not answer,
        they are those that the process knows, and StoreUnavailable is raised if it knows none yet.
        """
        if asked.done() and not asked.cancelled() and asked.exception() is None:
            found = asked.result()
            if found is not None:
                return found
        is_known = self._version != UNKNOWN
        if is_known and not asked.done() and time.monotonic() < self._silent_until:
            return self._users
        try:
            async with asyncio.timeout(ANSWER_SECONDS if is_known else None):
                found = await asyncio.shield(asked)
                return await self._load() if found is None else found
        except (StoreUnavailable, TimeoutError):
            if not is_known:
                raise
            self._silent_until = time.monotonic() + SILENT_SECONDS
            return self._users

    async def _load(self) -> Suspended:
        """Read all suspended users. Requests share a read that begins after their own."""
        earlier = self._loading
        if earlier is not None:
            await asyncio.wait([earlier])
        if self._loading is None or self._loading is earlier:
            reads: list[Command] = [("GET", keys.SUSPENDED_VERSION), ("HGETALL", keys.SUSPENDED)]
            self._loading = self._store.ask(reads, self._note_all)
        return await asyncio.shield(self._loading)

    def _note_change(self, replies: Sequence[Any]) -> Suspended | None:
        """Note the suspended users if they have changed; return None if they are too many."""
        match replies[0]:
            case [version, words]:
                return self._note(version, zip(words[::2], words[1::2], strict=True))
            case [_]:
                return None
            case _:
                return self._users

    def _note_all(self, replies: Sequence[Any]) -> Suspended:
        """Note the suspended users. The version is read before them, so that it is never too new."""
        version, numbers = replies
        return self._note(version or "", numbers.items())

    def _note(self, version: str, numbers: Iterable[tuple[str, str]]) -> Suspended:
        self._users = frozenset(int(user) for user, number in numbers if not number.startswith("-"))
        self._version = version
        return self._users


def existence(user: int) -> Command:
    """Return the command that reads whether a user exists and is not suspended; see `exists`."""
    return ("HMGET", keys.user(user), "id", "suspended")


def exists(row: Sequence[str | None]) -> bool:
    """Return True if the reply to `existence` says that the user exists and is not suspended."""
    id_, suspended = row
    return id_ is not None and (suspended is None or suspended.startswith("-"))
