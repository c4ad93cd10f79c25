"""Before it commits, the archiver waits for the replicas of the log's shard, for a limited time."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph import keys
from graph.errors import StoreUnavailable
from graph.store.store import Store
from server.embedded import EmbeddedStore
from tests.support.cluster import Cluster, cluster_in, until
from tests.support.graph_worlds import PATIENCE
from tests.support.pair import Pair, pair_in
from tests.support.stopped import stopped
from tests.support.tcp_proxy import proxy_to

LIMIT_MS = 300
LIMIT = LIMIT_MS / 1000


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Run a primary and its replica."""
    with pair_in(tmp_path_factory.mktemp("pair")) as pair:
        yield pair


async def seconds_of(store: Store) -> float:
    """Return how long it takes to wait for the replicas."""
    started = time.monotonic()
    await store.replicate(keys.REPLICATED, LIMIT_MS)
    return time.monotonic() - started


async def test_a_replica_has_received_all_earlier_writes(pair: Pair) -> None:
    store = Store(pair.primary.url)
    for n in range(50):
        await store.run("SET", "{log}:test", n)
        await store.replicate(keys.REPLICATED, 5000)
        assert pair.replica.run("GET", "{log}:test") == str(n)
    await store.close()


async def test_it_waits_for_a_slow_replica(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The archiver waits while the replica is frozen, and continues when the replica does."""
    monkeypatch.setattr("graph.store.store.ANSWER_SECONDS", 2 * PATIENCE)
    store = Store(pair.primary.url)
    await seconds_of(store)
    with stopped(pair.replica.process.pid):
        waiting = asyncio.create_task(store.replicate(keys.REPLICATED, int(2000 * PATIENCE)))
        await asyncio.sleep(LIMIT)
        assert not waiting.done()
    async with asyncio.timeout(PATIENCE):
        await waiting
    await store.close()


async def test_a_frozen_replica_delays_it_up_to_the_limit(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait ends at the limit, and the connection remains usable."""
    monkeypatch.setattr("graph.store.store.ANSWER_SECONDS", 2 * PATIENCE)
    store = Store(pair.primary.url)
    with stopped(pair.replica.process.pid):
        for _ in range(2):
            assert LIMIT <= await seconds_of(store) < PATIENCE
    async with asyncio.timeout(PATIENCE):
        await store.replicate(keys.REPLICATED, int(2000 * PATIENCE))
    await store.close()


async def test_a_store_without_replicas_costs_one_round_trip(running_store: EmbeddedStore) -> None:
    """The replies on the network show one round trip."""
    replies = 0

    async def counted(data: bytes, client: asyncio.StreamWriter) -> None:
        nonlocal replies
        replies += 1
        client.write(data)

    async with proxy_to(running_store.socket) as proxy:
        store = Store(f"valkey://127.0.0.1:{proxy.port}")
        await seconds_of(store)
        trips, proxy.replies = store.round_trips, counted

        for _ in range(3):
            await store.replicate(keys.REPLICATED, LIMIT_MS)

        assert (store.round_trips, replies) == (trips + 3, 3)
        await store.close()


async def test_a_primary_that_was_demoted_is_unavailable(pair: Pair) -> None:
    """The store is unavailable if the demotion comes before or during the wait: nothing may be committed then."""
    store = Store(pair.primary.url)
    await seconds_of(store)
    with stopped(pair.replica.process.pid):
        waiting = asyncio.create_task(store.replicate(keys.REPLICATED, 5000))
        await asyncio.sleep(0.1)
        pair.primary.run("REPLICAOF", "127.0.0.1", pair.replica.port)
        try:
            with pytest.raises(StoreUnavailable):
                await waiting
            with pytest.raises(StoreUnavailable):
                await store.replicate(keys.REPLICATED, LIMIT_MS)
        finally:
            pair.primary.run("REPLICAOF", "NO", "ONE")
    await asyncio.to_thread(until, pair.is_level)
    await seconds_of(store)
    await store.close()


async def test_a_primary_that_was_demoted_after_the_write_is_unavailable(pair: Pair) -> None:
    """The store is unavailable: the primary's successor may lack everything that the primary accepted."""

    async def demote(data: bytes, client: asyncio.StreamWriter) -> None:
        client.write(data.replace(b"$6\r\nmaster", b"$5\r\nslave"))

    async with proxy_to(pair.primary.socket) as proxy:
        store = Store(f"valkey://127.0.0.1:{proxy.port}")
        await seconds_of(store)
        proxy.replies = demote
        with pytest.raises(StoreUnavailable):
            await seconds_of(store)
        await store.close()


async def test_a_primary_that_is_killed_is_unavailable(tmp_path: Path) -> None:
    with EmbeddedStore(tmp_path) as embedded:
        store = Store(embedded.url)
        await seconds_of(store)
        embedded._stop_server()
        with pytest.raises(StoreUnavailable):
            await store.replicate(keys.REPLICATED, LIMIT_MS)
        await store.close()


def is_primary(cluster: Cluster, index: int) -> bool:
    """Return True if a node is a primary with a connected replica."""
    facts = cluster.nodes[index].run("INFO", "replication")
    return bool(facts["role"] == "master" and facts["connected_slaves"] == 1)


@pytest.mark.slow
async def test_a_cluster_waits_for_the_replica_of_the_log(tmp_path: Path) -> None:
    """After an unnoticed failover, one attempt fails, and later ones wait for the replica of the new primary."""
    with cluster_in(tmp_path) as cluster:
        store = Store(cluster.url)
        await seconds_of(store)
        index = cluster.nodes.index(cluster.owner(keys.LOG))
        primary, replica = cluster.nodes[index], cluster.nodes[index + 3]
        with stopped(replica.pid):
            assert LIMIT <= await seconds_of(store) < PATIENCE

        until(lambda: replica.run("INFO", "replication")["master_link_status"] == "up")
        replica.run("CLUSTER", "FAILOVER")
        until(lambda: is_primary(cluster, index + 3))
        with pytest.raises(StoreUnavailable):
            await store.replicate(keys.REPLICATED, LIMIT_MS)
        await store.replicate(keys.REPLICATED, LIMIT_MS)
        with stopped(primary.pid):
            assert LIMIT <= await seconds_of(store) < PATIENCE
        await store.close()
