"""Consumers: what the workers of a consumer group share of one stream.

What a consumer takes stays pending until it is acknowledged; a heartbeat keeps it from being taken over while it is
worked on; what a dead consumer left is claimed by the others, and what was delivered too often is set aside.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

from redis.exceptions import ResponseError

from graph import keys
from graph.errors import StoreUnavailable
from graph.store.commands import script
from graph.store.store import BLOCK_SECONDS, Store
from graph.tasks import end

GROUP = "projections"
MAX_DELIVERIES = 5
CONSUMERS_LIVE_MS = 3_600_000

Entry: TypeAlias = tuple[str, list[str] | None]
"""A stream entry: its id, and its fields and values, or None if it was removed from the stream since."""

logger = logging.getLogger("fanline.worker")


class Consumer:
    """One member of the group on one stream.

    It takes at most `batch` entries at a time, and takes over what another has held for `claim_ms` milliseconds.
    `tasks` is the key of the open tasks, for a stream of tasks.
    """

    def __init__(
        self, store: Store, stream: str, name: str, *, batch: int, claim_ms: int, tasks: str | None = None
    ) -> None:
        self._store = store
        self._stream = stream
        self._name = name
        self._batch = batch
        self._claim_ms = claim_ms
        self._tasks = tasks

    async def join(self, start: str) -> None:
        """Create the group unless there is one; a new one starts after this entry. One round trip."""
        try:
            await self._store.run("XGROUP", "CREATE", self._stream, GROUP, start, "MKSTREAM")
        except ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise

    async def take(self, store: Store, *, block: bool = False) -> list[Entry]:
        """Take new entries, over a connection of one's own if that may block for a while. One round trip."""
        waiting = ("BLOCK", int(BLOCK_SECONDS * 1000)) if block else ()
        reply = await store.run(
            "XREADGROUP", "GROUP", GROUP, self._name, "COUNT", self._batch, *waiting, "STREAMS", self._stream, ">"
        )
        return list(reply[self._stream]) if reply else []

    async def claim(self) -> list[Entry]:
        """Take over what was delivered long ago; what was delivered too often becomes a dead letter.

        On its last delivery an entry is alone, so that sound ones are not buried with one that kills its worker.
        """
        rows = await self._store.run("XPENDING", self._stream, GROUP, "IDLE", self._claim_ms, "-", "+", self._batch)
        claimable, last_chance = [], []
        for entry, _, _, deliveries in rows:
            if deliveries >= MAX_DELIVERIES:
                await self._bury(entry, f"Not projected after {deliveries} deliveries.")
            elif deliveries == MAX_DELIVERIES - 1:
                last_chance.append(entry)
            else:
                claimable.append(entry)
        chosen = claimable or last_chance[:1]
        if not chosen:
            return []
        claimed = await self._store.run("XCLAIM", self._stream, GROUP, self._name, self._claim_ms, *chosen)
        return [entry for entry in claimed if entry and entry[0]]

    async def _bury(self, entry: str, reason: str) -> None:
        logger.error("Entry %s of %s goes to the dead letters: %s", entry, self._stream, reason)
        names = [self._stream, keys.DEAD, *([self._tasks] if self._tasks else [])]
        await self._store.send([script("bury_fact").call(names, GROUP, entry, reason)])

    @asynccontextmanager
    async def holding(self, entries: Sequence[str]) -> AsyncIterator[None]:
        """Keep entries from being taken over by other workers while they are worked on.

        A worker that is told to stop lets go of them, so that another takes them over at once.
        """
        beating = [asyncio.create_task(self._beat(entries))] if entries and self._claim_ms else []
        try:
            yield
        except asyncio.CancelledError:
            if entries:
                with suppress(StoreUnavailable, ResponseError):
                    await self._let_go(entries)
            raise
        finally:
            await end(beating)

    async def _let_go(self, entries: Sequence[str]) -> None:
        """Leave entries to the others at once, as if they had not been delivered here. Two round trips."""
        held = await self._store.run("XPENDING", self._stream, GROUP, entries[0], "+", self._batch, self._name)
        claim = ("XCLAIM", self._stream, GROUP, self._name, 0)
        await self._store.send(
            [
                (*claim, entry, "IDLE", self._claim_ms, "RETRYCOUNT", max(0, deliveries - 1), "JUSTID")
                for entry, _, _, deliveries in held
                if entry in entries
            ]
        )

    async def _beat(self, entries: Sequence[str]) -> None:
        """Tell the group now and then that these entries are being worked on."""
        while True:
            await asyncio.sleep(self._claim_ms / 3000)
            try:
                await self._store.run("XCLAIM", self._stream, GROUP, self._name, 0, *entries, "JUSTID")
            except StoreUnavailable:
                continue

    async def forget_silent(self) -> None:
        """Forget workers of the past, silent for an hour and holding nothing. One round trip."""
        await self._store.send([script("forget_consumers").call([self._stream], GROUP, CONSUMERS_LIVE_MS)])
