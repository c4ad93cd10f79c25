"""The suspended users, in the memory of each process.

A suspension must hide all data of a user at once, however much there is, so it changes no posts or followers. All
processes read one hash of suspended users and keep it in memory: a request only asks whether the version of the hash
has changed, in the same round trip as its other reads. A suspension is in effect everywhere as soon as its event is
projected, and costs no extra round trip. With a near cache, requests do not even ask while the cache has the version.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from graph import keys
from graph.errors import StoreUnavailable
from graph.store.commands import Command, script
from graph.store.near_cache import Moment
from graph.store.recall import LookUp, near_values, prefetch
from graph.store.store import Store

ANSWER_SECONDS = 0.5
"""How many seconds a request waits for the shard with the suspensions, if the process has read them before."""
SILENT_SECONDS = 1.0
"""For this many seconds after a request got no answer from that shard, other requests do not wait for the shard."""
FEW = 1000
"""The maximum number of entries that each request reads by itself after a change. Requests of a process share larger
reads."""
UNKNOWN = "-"
"""The version of a process that has not read the suspensions yet."""
VERSION: LookUp[str] = LookUp(
    "GET", lambda _: keys.SUSPENDED_VERSION, (), lambda _, versions: [version or "" for version in versions]
)
"""The look-up of the version. It ignores the id."""

Suspended: TypeAlias = frozenset[int]


class Suspensions:
    """Knows which users are suspended. `projected` returns a number up to which every event is projected.

    The store is authoritative, except for events that may not be projected yet. Of the events about a user that this
    process knows, the one with the highest number counts. Numbers of lifted suspensions are negative.
    """

    def __init__(self, store: Store, projected: Callable[[], int]) -> None:
        self._store = store
        self._projected = projected
        self._stored: Mapping[int, int] = {}
        self._noted: Mapping[int, int] = {}
        self._users: Suspended = frozenset()
        self._version = UNKNOWN
        self._silent_until = 0.0
        self._loading: asyncio.Future[Suspended] | None = None

    @property
    def known(self) -> Suspended:
        """The suspended users that this process knows of."""
        return self._users

    def note(self, user: int, number: int, *, suspended: bool) -> None:
        """Record the event with this number that suspends a user or ends the suspension, before it is projected.

        The event counts until a read of the store that begins after its projection. It counts no longer than that,
        because a failover may lose the event.
        """
        if number > max(abs(known.get(user, 0)) for known in (self._stored, self._noted)):
            self._set(self._stored, {**self._noted, user: number if suspended else -number})

    def forget_noted(self) -> None:
        """Forget the events that `note` has recorded, because a failover has lost events."""
        self._set(self._stored, {})

    def may_wait(self) -> bool:
        """Return True if the near cache will probably have the version once a request has read something else.

        Return False while any events are noted: a failover may have lost them, and only a read of the store clears
        them.
        """
        near = self._store.near
        return near is not None and not self._noted and near.peek([keys.SUSPENDED_VERSION]) == [self._version]

    def near(self, moment: Moment | None) -> Suspended | None:
        """Return the suspended users if the near cache has their version for a request that began at `moment`."""
        version = near_values(self._store, [keys.SUSPENDED_VERSION], moment)
        return self._users if version == [self._version] else None

    def ask(self, moment: Moment | None = None) -> "asyncio.Future[Suspended | None]":
        """Start reading the suspended users; reads of the same event-loop ticks share the round trip. See `users`.

        `moment` is when the request began. If it is given, the near cache keeps the version for later requests.
        """
        prefetch(self._store, VERSION, [0], moment)
        names = [keys.SUSPENDED, keys.SUSPENDED_VERSION]
        read = script("read_suspended").call(names, self._version, FEW)
        return self._store.ask([read], partial(self._note_change, self._projected()))

    async def users(self, asked: "asyncio.Future[Suspended | None]") -> Suspended:
        """Return the suspended users that `ask` reads.

        No round trip except that of `ask`, and one more if the suspensions have changed and have more than `FEW`
        entries. If their shard does not answer, return the suspended users that the process knows of. Raises
        StoreUnavailable if the shard does not answer and the process has not read any version yet.
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
        """Read all suspended users. Requests that arrive during a read wait until it ends, then share the next one."""
        earlier = self._loading
        if earlier is not None:
            await asyncio.wait([earlier])
        if self._loading is None or self._loading is earlier:
            reads: list[Command] = [("GET", keys.SUSPENDED_VERSION), ("HGETALL", keys.SUSPENDED)]
            self._loading = self._store.ask(reads, partial(self._note_all, self._projected()))
        return await asyncio.shield(self._loading)

    def _note_change(self, projected: int, replies: Sequence[Any]) -> Suspended | None:
        """Record the suspended users if they have changed, and return them; None if there are too many."""
        match replies[0]:
            case [version, words]:
                return self._note(projected, version, zip(words[::2], words[1::2], strict=True))
            case [_]:
                return None
            case _:
                if self._noted:
                    self._set(self._stored, self._unprojected(projected))
                return self._users

    def _note_all(self, projected: int, replies: Sequence[Any]) -> Suspended:
        """Record the suspended users. The version was read before them, so it is never newer than they are."""
        version, numbers = replies
        return self._note(projected, version or "", numbers.items())

    def _note(self, projected: int, version: str, numbers: Iterable[tuple[str, str]]) -> Suspended:
        stored = {int(user): int(number) for user, number in numbers}
        noted = self._unprojected(projected).items()
        self._set(stored, {user: number for user, number in noted if abs(number) > abs(stored.get(user, 0))})
        self._version = version
        return self._users

    def _unprojected(self, projected: int) -> dict[int, int]:
        """Return the noted events above `projected`, the number up to which events were projected when a read began."""
        return {user: number for user, number in self._noted.items() if abs(number) > projected}

    def _set(self, stored: Mapping[int, int], noted: Mapping[int, int]) -> None:
        self._stored, self._noted = stored, noted
        self._users = frozenset(user for user, number in {**stored, **noted}.items() if number > 0)


def existence(user: int) -> Command:
    """Return the command that checks whether a user exists and is not suspended; see `exists`."""
    return ("HMGET", keys.user(user), "id", "suspended")


def exists(row: Sequence[str | None]) -> bool:
    """Return True if the reply to `existence` says that the user exists and is not suspended."""
    id_, suspended = row
    return id_ is not None and (suspended is None or suspended.startswith("-"))
