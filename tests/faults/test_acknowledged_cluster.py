"""On a cluster whose primaries fail under load, derived data agrees with the log.

Replication is asynchronous: with `safe`, a failover may lose the last acknowledged changes, and a `Gap` announces that.
`test_strict_changes` does the same with `strict`, which loses nothing.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from redis.crc import key_slot

from graph import keys
from tests.faults.checker.disasters import (
    Disasters,
    Fault,
    killed,
    paused,
    paused_for_20_seconds,
    separated,
    separated_from_nodes,
)
from tests.faults.checker.load import Load, checked
from tests.faults.checker.system import system_in
from tests.support.cluster import Cluster, Node, cluster_in
from tests.support.partitions import PartitionableCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

BETWEEN = 40  # operations between two faults
SLOTS_MOVED = 20


FAULTS = (killed, paused, paused_for_20_seconds, separated)


@asynccontextmanager
async def loaded(cluster: Cluster, folder: Path) -> AsyncIterator[Load]:
    """Run load on a cluster, and check it afterwards."""
    async with system_in(folder, cluster.url) as system, checked(system, lossy=True) as load:
        await load.progress(BETWEEN)
        yield load
        await load.progress(BETWEEN)


async def fail(cluster: PartitionableCluster, primary: Node, load: Load, fault: Fault) -> None:
    """Make a primary fail. It returns as a replica of its successor."""
    await Disasters(cluster, [fault], meanwhile=partial(load.progress, BETWEEN)).fail(fault, primary)
    assert primary.run("ROLE")[0] == "slave"
    await load.progress(BETWEEN)


@pytest.mark.parametrize("fault", FAULTS)
async def test_primaries_that_fail(fault: Fault, tmp_path: Path, long_profile: bool) -> None:
    """The primary of the log fails, and then each of the others."""
    if not long_profile:
        pytest.skip("takes half a minute: needs --long")
    with PartitionableCluster(tmp_path / "cluster") as cluster:
        owner = cluster.owner(keys.LOG)
        async with loaded(cluster, tmp_path) as load:
            for primary in sorted(cluster.primaries, key=lambda node: node is not owner):
                await fail(cluster, primary, load, fault)


async def test_a_worker_corrects_what_lost_events_leave_behind(tmp_path: Path, long_profile: bool) -> None:
    """The log's primary accepts changes that no replica receives, while other shards hold data derived from them."""
    if not long_profile:
        pytest.skip("takes more than half a minute: needs --long")
    with PartitionableCluster(tmp_path / "cluster") as cluster:
        async with loaded(cluster, tmp_path) as load:
            await fail(cluster, cluster.owner(keys.LOG), load, separated_from_nodes)


async def test_slots_that_move(tmp_path: Path, long_profile: bool) -> None:
    """Slots with data, including that of the log, move to another primary and back, key by key, and nothing is lost."""
    if not long_profile:
        pytest.skip("takes half a minute: needs --long")
    with cluster_in(tmp_path / "cluster") as cluster:
        async with system_in(tmp_path, cluster.url) as system, checked(system) as load:
            await load.progress(BETWEEN)
            first = cluster.owner(keys.LOG)
            other = next(node for node in cluster.primaries if node is not first)
            for source, target in ((first, other), (other, first)):
                for slot in {key_slot(keys.LOG.encode()), *used_slots(source)[:SLOTS_MOVED]}:
                    await asyncio.to_thread(move, cluster, slot, source, target)
                await load.progress(BETWEEN)


def used_slots(node: Node) -> list[int]:
    """Return slots in which a node has keys."""
    return sorted({key_slot(name.encode()) for name in node.run("KEYS", "*")})


def move(cluster: Cluster, slot: int, source: Node, target: Node) -> None:
    """Move a slot, one key at a time."""
    target.run("CLUSTER SETSLOT", slot, "IMPORTING", source.id)
    source.run("CLUSTER SETSLOT", slot, "MIGRATING", target.id)
    while names := source.run("CLUSTER GETKEYSINSLOT", slot, 1):
        source.run("MIGRATE", "127.0.0.1", target.port, names[0], 0, 5000)
    for node in (target, *(node for node in cluster.primaries if node is not target)):
        node.run("CLUSTER SETSLOT", slot, "NODE", target.id)
