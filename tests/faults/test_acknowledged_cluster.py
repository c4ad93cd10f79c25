"""On a cluster whose primaries fail under load, derived data agrees with the log.

Replication is asynchronous: with `safe`, a failover may lose the last acknowledged changes, and a `Gap` announces that.
With `strict`, no change is lost, and streams are complete.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from redis.crc import key_slot

from graph import keys
from tests.faults.checker.load import Load, checked
from tests.faults.checker.system import system_in
from tests.support.cluster import PRIMARIES, Cluster, Node, cluster_in, kill, until
from tests.support.partitions import PartitionableCluster
from tests.support.stopped import stopped

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

BETWEEN = 40  # operations between two faults
SLOTS_MOVED = 20
FAILOVER_SECONDS = 3.0  # more than the node timeout: a replica takes over
STRICT_REPLICAS = 2  # of each primary: after a failover, the other one still acknowledges changes

Fault = Callable[[Cluster, Node, Load], Awaitable[None]]


async def killed(cluster: Cluster, primary: Node, load: Load) -> None:
    """Kill a primary, and start it again after another node has taken over."""
    await asyncio.to_thread(kill, primary)
    others = [node for node in cluster.nodes if node is not primary]
    await asyncio.to_thread(until, lambda: sum(node.run("ROLE")[0] == "master" for node in others) == PRIMARIES)
    await load.progress(BETWEEN)
    await asyncio.to_thread(primary.ensure)


async def paused_for_5_seconds(_: Cluster, primary: Node, load: Load) -> None:
    with stopped(primary.pid):
        await asyncio.sleep(5)


async def paused_for_20_seconds(_: Cluster, primary: Node, load: Load) -> None:
    with stopped(primary.pid):
        await asyncio.sleep(20)


async def separated(cluster: Cluster, primary: Node, load: Load) -> None:
    """Separate a primary from the other nodes and from the clients."""
    assert isinstance(cluster, PartitionableCluster)
    with cluster.partitioned(primary):
        await asyncio.sleep(FAILOVER_SECONDS)
        await load.progress(BETWEEN)


async def separated_from_nodes(cluster: Cluster, primary: Node, load: Load) -> None:
    """Separate a primary from the other nodes. Clients still send changes to it."""
    assert isinstance(cluster, PartitionableCluster)
    with cluster.partitioned(primary, from_clients=False):
        await asyncio.sleep(FAILOVER_SECONDS)
        await load.progress(BETWEEN)


FAULTS: list[Fault] = [killed, paused_for_5_seconds, paused_for_20_seconds, separated]


@contextmanager
def partitionable(folder: Path, *, strict: bool = False) -> Iterator[PartitionableCluster]:
    """Run a cluster whose nodes can be separated."""
    with PartitionableCluster(folder, replicas=STRICT_REPLICAS if strict else 1) as cluster:
        yield cluster


@asynccontextmanager
async def loaded(
    cluster: Cluster, folder: Path, *, strict: bool = False, gaps: bool = False, healed: bool = False
) -> AsyncIterator[Load]:
    """Run load on a cluster, and check it afterwards."""
    level = {"FANLINE_DURABILITY": "strict"} if strict else {}
    async with (
        system_in(folder, cluster.url, **level) as system,
        checked(system, lossy=not strict, gaps=gaps, healed=healed) as load,
    ):
        await load.progress(BETWEEN)
        yield load
        await load.progress(BETWEEN)


async def fail(cluster: Cluster, primary: Node, load: Load, fault: Fault) -> None:
    """Make a primary fail. It returns as a replica of its successor."""
    await fault(cluster, primary, load)
    await asyncio.to_thread(until, cluster.is_complete)
    assert primary.run("ROLE")[0] == "slave"
    await load.progress(BETWEEN)


@pytest.mark.parametrize("fault", FAULTS)
async def test_primaries_that_fail(fault: Fault, tmp_path: Path, long_profile: bool) -> None:
    """The primary of the log fails and, in the long profile, each of the others."""
    if fault is not killed and not long_profile:
        pytest.skip("takes half a minute: needs --long")
    with partitionable(tmp_path / "cluster") as cluster:
        owner = cluster.owner(keys.LOG)
        async with loaded(cluster, tmp_path) as load:
            for primary in sorted(cluster.primaries, key=lambda node: node is not owner)[: 3 if long_profile else 1]:
                await fail(cluster, primary, load, fault)


async def test_a_worker_corrects_what_lost_events_leave_behind(tmp_path: Path, long_profile: bool) -> None:
    """The log's primary accepts changes that no replica receives, while other shards hold data derived from them."""
    if not long_profile:
        pytest.skip("takes more than half a minute: needs --long")
    with partitionable(tmp_path / "cluster") as cluster:
        async with loaded(cluster, tmp_path, healed=True) as load:
            await fail(cluster, cluster.owner(keys.LOG), load, separated_from_nodes)


@pytest.mark.parametrize("fault", [*FAULTS, separated_from_nodes])
async def test_primaries_that_fail_with_strict(fault: Fault, tmp_path: Path, long_profile: bool) -> None:
    """No acknowledged change is lost, and streams are complete.

    Before a primary that is separated from its replicas reports changes as not durable, clients may read them. Streams
    then announce a `Gap` and begin again before it.
    """
    if not long_profile:
        pytest.skip("takes about a minute on two busy cores: needs --long")
    dirty = fault is separated_from_nodes
    with partitionable(tmp_path / "cluster", strict=True) as cluster:
        async with loaded(cluster, tmp_path, strict=True, gaps=dirty) as load:
            for primary in cluster.primaries:
                await fail(cluster, primary, load, fault)


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
