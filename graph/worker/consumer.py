"""Consumers: the members of the consumer group that workers share, on the log and on the stream of fan-out tasks.

An entry that a consumer reads stays pending until it is acknowledged. The consumer holds a lease on it, which it renews
while it works. When a lease has expired, another consumer claims the entry. An entry that was delivered five times
becomes a dead letter, unless its kind is unknown: a worker of a later version can project it.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from redis.exceptions import ResponseError

from graph import keys
from graph.errors import StoreUnavailable
from graph.log.dead_letters import DeadLetters
from graph.log.events import StreamEntry, unknown_kind
from graph.log.log import Log
from graph.log.numbers import entry_id
from graph.store.store import BLOCK_SECONDS, Store
from graph.tasks import end

GROUP = "projections"
MAX_DELIVERIES = 5
RENEWALS_PER_LEASE = 3
RELEASED_MS = 24 * 3_600_000
"""The idle time that a released entry gets: longer than the lease of any worker, also of another version."""


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
        that an entry that crashes its worker does not turn the others of its batch into dead letters. Two round trips,
        and two for every dead letter.
        """
        last = "+" if before is None else f"({before}"
        rows = await self._store.run("XPENDING", self._stream, GROUP, "IDLE", self._lease_ms, "-", last, self._batch)
        claimable, last_delivery = [], []
        for entry, _, _, deliveries in rows:
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

    async def _is_unknown(self, entry: str) -> bool:
        found = await self._store.run("XRANGE", self._stream, entry, entry)
        return any(unknown_kind(each) is not None for each in found)

    @asynccontextmanager
    async def lease(self, entries: Sequence[str]) -> AsyncIterator[None]:
        """Renew the lease on entries during the block.

        A worker that is cancelled releases the lease, so that another worker can claim the entries immediately.
        """
        renewing = [asyncio.create_task(self._renew(entries))] if entries and self._lease_ms else []
        try:
            yield
        except asyncio.CancelledError:
            if entries:
                with suppress(StoreUnavailable, ResponseError):
                    await self.release(entries)
            raise
        finally:
            await end(renewing)

    async def release(self, entries: Sequence[str]) -> None:
        """Let other workers claim a batch of entries at once, without counting this delivery. Two round trips."""
        most = 2 * self._batch  # this consumer may hold another batch with entries in the same range
        held = await self._store.run("XPENDING", self._stream, GROUP, entries[0], entries[-1], most, self._name)
        claim = ("XCLAIM", self._stream, GROUP, self._name, 0)
        await self._store.send(
            [
                (*claim, entry, "IDLE", RELEASED_MS, "RETRYCOUNT", max(0, deliveries - 1), "JUSTID")
                for entry, _, _, deliveries in held
                if entry in entries
            ]
        )

    async def _renew(self, entries: Sequence[str]) -> None:
        while True:
            await asyncio.sleep(self._lease_ms / 1000 / RENEWALS_PER_LEASE)
            try:
                await self._store.run("XCLAIM", self._stream, GROUP, self._name, 0, *entries, "JUSTID")
            except StoreUnavailable:
                continue


async def create_groups(store: Store, log: Log) -> None:
    """Create the consumer groups of the log, from the watermark on, and of the tasks, if missing. Three round trips."""
    for stream, start in ((keys.LOG, entry_id(await log.watermark())), (keys.FANOUTS, "0")):
        try:
            await store.run("XGROUP", "CREATE", stream, GROUP, start, "MKSTREAM")
        except ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise
