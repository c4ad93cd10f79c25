"""Failovers of a store whose archive holds later events."""

from typing import Any

from graph import Graph, keys
from tests.graph.archiver.world import ArchiveWorld, dump, load


class Failover:
    """A failover of some shards: their keys go back to an earlier state."""

    def __init__(self, world: ArchiveWorld, *prefixes: str) -> None:
        self._world = world
        self._prefixes = prefixes or ("{log}",)
        self._dumps: list[tuple[str, int, Any]] = []

    async def begin(self) -> "Failover":
        """Save the state that the replicas have."""
        for prefix in self._prefixes:
            self._dumps += await dump(self._world.url, prefix)
        return self

    async def happen(self) -> Graph:
        """Restore the saved state, and return a new process."""
        for prefix in self._prefixes:
            async for key in self._world.raw.scan_iter(f"{prefix}*"):
                await self._world.raw.delete(key)
        await load(self._world.url, self._dumps)
        await self._world.raw.delete(keys.ARCHIVER)
        return self._world.process()
