"""Consumers: members of the consumer group that workers share, on the log and on the stream of fan-out tasks.

An entry that a consumer reads stays pending until it is acknowledged. The consumer holds a lease on it, which it renews
while it makes progress. When a lease has expired, another consumer claims the entry. An entry that was delivered five
times becomes a dead letter, unless its kind is unknown: a worker of a later version can project it. A delivery
that an outage interrupts does not count: it is subtracted from the entry's deliveries immediately.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Collection, Sequence
from contextlib import asynccontextmanager, suppress

from redis.exceptions import ResponseError

from graph import keys
from graph.errors import StoreUnavailable
from graph.log.dead_letters import DeadLetters
from graph.log.encoding import StreamEntry, unknown_kind
from graph.model import EPOCH_MS
from graph.store.commands import script
from graph.store.store import BLOCK_SECONDS, Store
from graph.tasks import end, to_the_end

GROUP = "projections"
MAX_DELIVERIES = 5
RENEWALS_PER_LEASE = 3
LEASES_WITHOUT_PROGRESS = 3
"""How long a consumer keeps entries without making progress, in lease durations."""
LEASES_AWAY = 2
"""How long a consumer does not claim entries that it has given up, in lease durations."""
RELEASE_SECONDS = 2.0
"""How long a stopping worker tries to release its entries."""
RELEASED_MS = 24 * 3_600_000
"""The idle time that a released entry gets: longer than the lease of any worker of any version."""
MOST_RELEASED = 5000
"""The maximum number of pending entries that a stopping consumer examines for release: more than a worker holds."""


class EntryLease:
    """A lease on entries, renewed until `seconds` have passed without progress.

    `is_counted` is True if the deliveries of its entries count towards `MAX_DELIVERIES`.
    """

    def __init__(self, entries: Sequence[str], seconds: float, *, is_counted: bool = True) -> None:
        self.entries = list(entries)
        self.is_counted = is_counted
        self._seconds = seconds
        self._progress_at = time.monotonic()
        self._was_stale = False

    def progress(self) -> None:
        """Record progress."""
        self._progress_at = time.monotonic()

    @property
    def is_stale(self) -> bool:
        """True once there has been no progress for `seconds`. It stays True: another consumer may have the entries."""
        self._was_stale = self._was_stale or time.monotonic() - self._progress_at >= self._seconds
        return self._was_stale


class Consumer:
    """A member of the group on one stream.

    It reads at most `batch` entries at a time, and claims entries whose lease of `lease_ms` milliseconds has expired.
    `open_tasks` is the key of the open tasks, for a stream of tasks.
    """

    def __init__(
        self,
        store: Store,
        dead_letters: DeadLetters,
        stream: str,
        name: str,
        *,
        batch: int,
        lease_ms: int,
        open_tasks: str | None = None,
    ) -> None:
        self._store = store
        self._dead_letters = dead_letters
        self._stream = stream
        self._name = name
        self._batch = batch
        self._lease_ms = lease_ms
        self._open_tasks = open_tasks
        self._leases: set[EntryLease] = set()
        self._given_up: dict[str, float] = {}

    async def read(self, store: Store, *, block: bool = False) -> list[StreamEntry]:
        """Read new entries over the connection of `store`, which a blocking read occupies. One round trip."""
        blocking = ("BLOCK", int(BLOCK_SECONDS * 1000)) if block else ()
        reply = await store.run(
            "XREADGROUP", "GROUP", GROUP, self._name, "COUNT", self._batch, *blocking, "STREAMS", self._stream, ">"
        )
        return list(reply[self._stream]) if reply else []

    async def claim(self, before: str | None = None) -> list[StreamEntry]:
        """Claim entries whose lease has expired; those delivered five times become dead letters.

        With `before`, only entries before this one are claimed. For its last delivery an entry is claimed alone, so
        that an entry that crashes its worker does not turn the others of its batch into dead letters. Entries that this
        consumer holds or has recently given up are left out. Two round trips, and two for every dead letter.
        """
        last = "+" if before is None else f"({before}"
        passed_over = self._passed_over()
        count = self._batch + len(passed_over)
        rows = await self._store.run("XPENDING", self._stream, GROUP, "IDLE", self._lease_ms, "-", last, count)
        claimable: list[str] = []
        last_delivery: list[str] = []
        for entry, _, _, deliveries in rows:
            if entry in passed_over or len(claimable) == self._batch:
                continue
            if deliveries >= MAX_DELIVERIES and not await self._is_unknown(entry):
                reason = f"Not projected after {deliveries} deliveries."
                await self._dead_letters.add(self._stream, GROUP, entry, reason, self._open_tasks)
            elif deliveries == MAX_DELIVERIES - 1:
                last_delivery.append(entry)
            else:
                claimable.append(entry)
        chosen = claimable or last_delivery[:1]
        if not chosen:
            return []
        claimed = await self._store.run("XCLAIM", self._stream, GROUP, self._name, self._lease_ms, *chosen)
        return [entry for entry in claimed if entry and entry[0]]

    def _passed_over(self) -> Collection[str]:
        now = time.monotonic()
        self._given_up = {entry: until for entry, until in self._given_up.items() if until > now}
        return self._given_up.keys() | {entry for lease in self._leases for entry in lease.entries}

    async def _is_unknown(self, entry: str) -> bool:
        found = await self._store.run("XRANGE", self._stream, entry, entry)
        return any(unknown_kind(each) is not None for each in found)

    @asynccontextmanager
    async def lease(self, entries: Sequence[str], *, is_counted: bool = True) -> AsyncIterator[EntryLease]:
        """Renew the lease on entries during the `with` block, as long as there is progress.

        A worker that is cancelled releases the lease, so that another worker can claim the entries immediately.
        """
        lease = EntryLease(entries, LEASES_WITHOUT_PROGRESS * self._lease_ms / 1000, is_counted=is_counted)
        renewing = [asyncio.create_task(self._renew(lease))] if entries and self._lease_ms else []
        self._leases.add(lease)
        try:
            yield lease
        except asyncio.CancelledError:
            if lease.entries:
                await self._release_cancelled(lease)
            raise
        finally:
            await end(renewing)
            self._leases.discard(lease)

    async def _release_cancelled(self, lease: EntryLease) -> None:
        await to_the_end(_briefly(self._change(lease.entries, RELEASED_MS, int(lease.is_counted))))

    async def close(self) -> None:
        """Release entries delivered to a read that was cancelled before its reply arrived. At most two round trips.

        Call it when no read is running and no lease is held.
        """
        await _briefly(self._release_unseen())

    async def _release_unseen(self) -> None:
        rows = await self._store.run("XPENDING", self._stream, GROUP, "-", "+", MOST_RELEASED, self._name)
        await self._change([entry for entry, _, idle, _ in rows if idle < RELEASED_MS], RELEASED_MS, 0)

    async def give_up(self, entries: Sequence[str]) -> None:
        """Release entries whose delivery is already uncounted, and do not claim them for a while. Two round trips."""
        until = time.monotonic() + LEASES_AWAY * self._lease_ms / 1000
        await self._change(entries, RELEASED_MS, 0)
        self._given_up.update(dict.fromkeys(entries, until))

    async def release(self, entries: Sequence[str]) -> None:
        """Release entries to other workers, without counting this delivery. Two round trips."""
        await self._change(entries, RELEASED_MS, 1)

    async def uncount(self, entries: Sequence[str]) -> Collection[str]:
        """Do not count this delivery of entries. Return those that this consumer still holds. Two round trips."""
        return await self._change(entries, 0, 1)

    async def _change(self, entries: Sequence[str], idle_ms: int, uncounted: int) -> Collection[str]:
        replies = await self._store.send(
            [("XPENDING", self._stream, GROUP, entry, entry, 1, self._name) for entry in entries]
        )
        held = {entry: max(0, deliveries - uncounted) for rows in replies for entry, _, _, deliveries in rows}
        claim = ("XCLAIM", self._stream, GROUP, self._name, 0)
        await self._store.send(
            [(*claim, entry, "IDLE", idle_ms, "RETRYCOUNT", count, "JUSTID") for entry, count in held.items()]
        )
        return held.keys()

    async def _renew(self, lease: EntryLease) -> None:
        while not lease.is_stale:
            await asyncio.sleep(self._lease_ms / 1000 / RENEWALS_PER_LEASE)
            if lease.entries:
                with suppress(StoreUnavailable, ResponseError):
                    await self._store.run("XCLAIM", self._stream, GROUP, self._name, 0, *lease.entries, "JUSTID")


async def _briefly(release: Awaitable[object]) -> None:
    """Await the release of entries for a limited time. If it fails, their leases expire."""
    with suppress(StoreUnavailable, ResponseError, TimeoutError):
        async with asyncio.timeout(RELEASE_SECONDS):
            await release


async def create_groups(store: Store) -> None:
    """Create missing consumer groups: of the log, starting at the watermark, and of the tasks. One round trip."""
    await store.run(*script("create_groups").call([keys.LOG, keys.WATERMARK, keys.FANOUTS], GROUP, EPOCH_MS))
