"""Faults of a cluster's primaries, one after another, until they are stopped."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence

from redis.crc import key_slot

from graph import keys
from tests.support.cluster import Node, kill, until
from tests.support.partitions import PartitionableCluster
from tests.support.slot_moves import move_at_once
from tests.support.stopped import stopped

FAILOVER_SECONDS = 3.0  # more than the node timeout: a replica takes over
BETWEEN_SECONDS = 5.0

Meanwhile = Callable[[], Awaitable[None]]
Fault = Callable[[PartitionableCluster, Node, Meanwhile], Awaitable[None]]


async def a_while() -> None:
    """Wait while users act during the fault."""
    await asyncio.sleep(FAILOVER_SECONDS)


class Disasters:
    """One fault after another, of one primary after another. `happened` lists the faults.

    `meanwhile` is awaited during each fault, after a replica has had time to take over.
    """

    def __init__(
        self, cluster: PartitionableCluster, kinds: Sequence[Fault], first: int = 0, meanwhile: Meanwhile = a_while
    ) -> None:
        self.cluster = cluster
        self.happened: list[str] = []
        self.stopped = False
        self._kinds = kinds
        self._first = first
        self._meanwhile = meanwhile

    async def run(self) -> None:
        """Make primaries fail until stopped: in turn, the log's primary in every way, and another one in every way."""
        for turn in itertools.count(self._first):
            await asyncio.sleep(BETWEEN_SECONDS)
            if self.stopped:
                return
            round_, kind = divmod(turn, len(self._kinds))
            await self.fail(self._kinds[kind], self.owner(keys.LOG if round_ % 2 == 0 else f"key{turn}"))

    async def fail(self, fault: Fault, primary: Node) -> None:
        """Make a primary fail, and wait until the cluster is complete again."""
        self.happened.append(fault.__name__)
        await fault(self.cluster, primary, self._meanwhile)
        await asyncio.to_thread(until, self.cluster.is_complete)

    def owner(self, key: str) -> Node:
        """Return the primary that owns a key's slot now."""
        slot = key_slot(key.encode())
        shards = self.cluster.nodes[0].run("CLUSTER SLOTS")
        port = next(primary[1] for first, last, primary, *_ in shards if first <= slot <= last)
        return next(node for node in self.cluster.nodes if node.port == port)


async def killed(_: PartitionableCluster, primary: Node, meanwhile: Meanwhile) -> None:
    """Kill a primary, and start it again after another node has taken over."""
    await asyncio.to_thread(kill, primary)
    await asyncio.sleep(FAILOVER_SECONDS)
    await meanwhile()
    await asyncio.to_thread(primary.ensure)


async def paused(_: PartitionableCluster, primary: Node, meanwhile: Meanwhile) -> None:
    """Pause a primary, and resume it after another node has taken over."""
    with stopped(primary.pid):
        await asyncio.sleep(FAILOVER_SECONDS)
        await meanwhile()


async def paused_for_20_seconds(_: PartitionableCluster, primary: Node, meanwhile: Meanwhile) -> None:
    """Pause a primary for longer than workers and clients wait for an answer."""
    with stopped(primary.pid):
        await asyncio.sleep(20)
        await meanwhile()


async def separated(cluster: PartitionableCluster, primary: Node, meanwhile: Meanwhile) -> None:
    """Separate a primary from the other nodes and from the clients."""
    with cluster.partitioned(primary):
        await asyncio.sleep(FAILOVER_SECONDS)
        await meanwhile()


async def separated_from_nodes(cluster: PartitionableCluster, primary: Node, meanwhile: Meanwhile) -> None:
    """Separate a primary from the other nodes. Clients still send changes to it."""
    with cluster.partitioned(primary, from_clients=False):
        await asyncio.sleep(FAILOVER_SECONDS)
        await meanwhile()


async def moved(cluster: PartitionableCluster, primary: Node, meanwhile: Meanwhile) -> None:
    """Move each slot of a primary to another one and back, in halves: a primary without slots becomes a replica."""
    shards = primary.run("CLUSTER SLOTS")
    ports = {owner[1] for _, _, owner, *_ in shards} - {primary.port}
    other = next(node for node in cluster.nodes if node.port in ports)
    for first, last, (_, port, *_), *_ in shards:
        if port == primary.port:
            middle = (first + last) // 2
            for low, high in ((first, middle), (middle + 1, last)):
                for source, target in ((primary, other), (other, primary)) if low <= high else ():
                    await asyncio.to_thread(move_at_once, cluster, low, source, target, high)
                    await meanwhile()


FAULTS: tuple[Fault, ...] = (killed, paused, separated, moved, separated_from_nodes, paused_for_20_seconds)
