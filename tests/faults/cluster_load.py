"""Writes to all shards of a cluster during a fault."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from graph.errors import StoreUnavailable
from graph.store.store import Store
from tests.support.cluster import Cluster, Node


@dataclass(frozen=True)
class Write:
    """One write: its key, its start, its duration, and whether it was acknowledged."""

    key: str
    began: float
    seconds: float
    acknowledged: bool


class Load:
    """Writers that each write new keys to one shard, one after another. No error but StoreUnavailable may occur.

    Concurrent loads need different names.
    """

    def __init__(self, store: Store, cluster: Cluster, writers: int = 4, pause: float = 0.01, name: str = "") -> None:
        self.writes: list[Write] = []
        self._store = store
        self._cluster = cluster
        self._pause = pause
        self._name = name
        self._over = False
        self.writers = writers
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Load":
        tags = [tag_on(self._cluster, node) for node in self._cluster.primaries]
        self._tasks = [
            asyncio.create_task(self._write(f"{{{tag}}}:{self._name}{writer}"))
            for tag in tags
            for writer in range(self.writers)
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._over = True
        await asyncio.gather(*self._tasks)

    async def _write(self, prefix: str) -> None:
        number = 0
        while not self._over:
            number += 1
            key, began, acknowledged = f"{prefix}:{number}", time.monotonic(), True
            try:
                await self._store.send([("SET", key, number), ("GET", key)])
            except StoreUnavailable:
                acknowledged = False
            self.writes.append(Write(key, began, time.monotonic() - began, acknowledged))
            await asyncio.sleep(self._pause)

    def of(self, *owners: Node) -> list[Write]:
        """Return the writes to the shards that these nodes owned at the start."""
        return [write for write in self.writes if self._cluster.owner(tag_of(write.key)) in owners]

    def others(self, owner: Node) -> list[Write]:
        """Return the writes to the other shards."""
        return self.of(*(node for node in self._cluster.primaries if node is not owner))


def tag_on(cluster: Cluster, node: Node, name: str = "") -> str:
    """Return a hash tag that begins with a name and whose slot belonged to a node at the start."""
    return next(tag for tag in (f"{name}{n}" for n in range(1000)) if cluster.owner(tag) is node)


def tag_of(key: str) -> str:
    return key.partition("{")[2].partition("}")[0]


async def lost(store: Store, writes: Sequence[Write]) -> list[str]:
    """Return the keys of acknowledged writes that the store lacks."""
    keys = [write.key for write in writes if write.acknowledged]
    found = await store.read([("EXISTS", key) for key in keys])
    return [key for key, there in zip(keys, found, strict=True) if not there]
