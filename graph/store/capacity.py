"""The memory of the store: how full it is, and whether it refuses writes.

A store that reaches its `maxmemory` refuses every write that adds something. Changes are refused earlier, at a fraction
of that limit, so that deletions, projections, archiving and trimming have room, and the store recovers without an
operator.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from graph.errors import FULL_SECONDS, Overloaded, StoreFull, StoreUnavailable
from graph.store.store import Store
from graph.tasks import end

REFRESH_SECONDS = 1.0
ANSWER_SECONDS = 2.0
"""Longer than `Store.ask_primaries` waits for each primary: a primary that hangs must not end the whole reading."""
WRITE = "#!lua\nreturn 1"
"""A script that writes nothing. A server refuses it, with the reason, exactly when it refuses to add something."""

logger = logging.getLogger("fanline.store")


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of one primary.

    `is_limited` is True if `maxmemory` is set; otherwise `limit` is the memory of the machine. `policy` is the
    `maxmemory-policy`. `replicas` is the number of connected replicas, and `needs_replicas` is True if writes are
    refused without them (`min-replicas-to-write`). `refusal` says why the server refuses writes now, or is empty.
    """

    used: int
    limit: int
    is_limited: bool
    policy: str
    replicas: int
    needs_replicas: bool
    refusal: str = ""

    @property
    def fullness(self) -> float:
        """The fraction of the limit that is in use."""
        return self.used / self.limit if self.limit else 0.0

    @classmethod
    def of(cls, info: Mapping[str, str], refusal: str) -> "Memory":
        """Return the memory that a server reports with INFO."""
        limit = int(info.get("maxmemory", 0))
        return cls(
            int(info.get("used_memory", 0)) - int(info.get("mem_not_counted_for_evict", 0)),
            limit or int(info.get("total_system_memory", 0)),
            bool(limit),
            info.get("maxmemory_policy", ""),
            int(info.get("connected_slaves", 0)),
            "min_slaves_good_slaves" in info,
            refusal,
        )


class Capacity:
    """The memory of all primaries, read on demand, at most once a second.

    Changes are refused while any primary uses the fraction `full_at` of its memory or more. `memory` holds the
    reports of the primaries that answered the last reading; if none answers, the earlier reports are kept. `answering`
    is the number of primaries that answered the last reading.
    """

    def __init__(self, store: Store, full_at: float) -> None:
        self._store = store
        self._full_at = full_at
        self.memory: tuple[Memory, ...] = ()
        self.answering = 0
        self._refreshing: asyncio.Task[None] | None = None
        self._next = 0.0

    @property
    def fullness(self) -> float:
        """The fraction of its memory that the fullest primary uses, as last read."""
        return max((memory.fullness for memory in self.memory), default=0.0)

    @property
    def is_full(self) -> bool:
        """True if changes are refused, as last read."""
        return self.fullness >= self._full_at

    @property
    def refusal(self) -> str:
        """Why a primary refuses writes, as last read; empty if none does."""
        return next((memory.refusal for memory in self.memory if memory.refusal), "")

    def refusal_of_changes(self) -> str:
        """Return why changes are refused, as last read, or an empty string.

        Does not wait: the memory is read in the background, no sooner than a second after the last reading.
        """
        self._refresh()
        return StoreFull.message if self.is_full else ""

    def check(self) -> None:
        """Raise Overloaded if `refusal_of_changes` returns a reason. Does not wait either."""
        refusal = self.refusal_of_changes()
        if refusal:
            raise Overloaded(refusal, FULL_SECONDS)

    async def read(self) -> None:
        """Read the memory, unless this was attempted in the last second. At most one round trip and two seconds."""
        reading = self._refresh()
        if reading is not None:
            await asyncio.wait([reading])

    def _refresh(self) -> "asyncio.Task[None] | None":
        """Start reading the memory, unless this was attempted in the last second. Return the running read, if any."""
        loop = asyncio.get_running_loop()
        if self._refreshing is None and loop.time() >= self._next:
            self._refreshing = loop.create_task(self._read())
            self._refreshing.add_done_callback(self._end)
        return self._refreshing

    def _end(self, task: "asyncio.Task[None]") -> None:
        self._refreshing = None
        self._next = task.get_loop().time() + REFRESH_SECONDS
        failure = None if task.cancelled() else task.exception()
        if failure is not None:
            logger.error("The memory of the store cannot be read", exc_info=failure)

    async def _read(self) -> None:
        before, self.answering = self.refusal, 0
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                replies = await self._store.ask_primaries(("INFO", "memory", "replication"), ("EVAL", WRITE, 0))
        except (StoreUnavailable, TimeoutError):
            return
        found = [Memory.of(sections(info), refused(write)) for info, write in replies.values()]
        self.answering = len(found)
        self.memory = tuple(found) or self.memory
        if self.refusal and self.refusal != before:
            logger.warning("The store is refusing writes: %s", self.refusal)

    async def close(self) -> None:
        """Cancel the running read."""
        if self._refreshing is not None:
            await end([self._refreshing])


def refused(reply: object) -> str:
    """Return why a server refuses the script that writes nothing, or an empty string."""
    return str(reply) if isinstance(reply, Exception) else ""


def sections(info: object) -> dict[str, str]:
    """Return the fields of the reply to INFO; none if the server refuses the command."""
    return dict(line.split(":", 1) for line in str(info).splitlines() if ":" in line)
