"""The cluster pipeline: moving slots and failing primaries delay reads, but never cause a wrong reply."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.crc import key_slot
from redis.exceptions import ResponseError

from graph.errors import StoreUnavailable
from graph.store.commands import script
from graph.store.outages import IMMEDIATE_REDIRECTIONS
from graph.store.store import Store
from tests.support.cluster import Cluster, cluster_in, kill, until
from tests.support.graph_worlds import PATIENCE, outcomes_of
from tests.support.slot_moves import finish, move

pytestmark = pytest.mark.slow

KEYS = 300


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run a cluster for the tests that leave it unchanged."""
    with cluster_in(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
async def store(joined: Cluster) -> AsyncIterator[Store]:
    """Open a store with 300 keys on all nodes. Each key holds its own name."""
    async with filled(joined) as store:
        yield store


class filled:  # noqa: N801 - a context manager
    """A store of a cluster, with keys that hold their own names."""

    def __init__(self, cluster: Cluster) -> None:
        self.store = Store(cluster.url)

    async def __aenter__(self) -> Store:
        await self.store.send([("SET", key(n), key(n)) for n in range(KEYS)])
        return self.store

    async def __aexit__(self, *_: object) -> None:
        await self.store.close()


def key(n: int) -> str:
    return f"key{n}"


def all_of(store: Store) -> "list[asyncio.Future[list[Any]]]":
    """Return reads of all keys, ten keys per read."""
    return [store.ask([("GET", key(n + i)) for i in range(10)], list) for n in range(0, KEYS, 10)]


async def check(reads: "list[asyncio.Future[list[Any]]]") -> int:
    """Assert that each read has the right replies or none, and return the number of reads without replies."""
    without = 0
    async with asyncio.timeout(PATIENCE):
        for start, answer in enumerate(await asyncio.gather(*reads, return_exceptions=True)):
            if isinstance(answer, StoreUnavailable):
                without += 1
            else:
                assert answer == [key(10 * start + i) for i in range(10)]
    return without


async def test_reads_go_to_the_nodes_that_own_their_keys(store: Store) -> None:
    """The reads of an event-loop iteration are sent to several nodes and count as one round trip."""
    await check(all_of(store))
    trips, commands = store.round_trips, store.commands

    assert await check(all_of(store)) == 0

    assert (store.round_trips, store.commands) == (trips + 1, commands + KEYS)
    assert not store.in_order


async def test_an_error_of_one_node_fails_only_its_read(store: Store) -> None:
    bad, good = await outcomes_of(
        store.ask([("GET", key(n)) for n in range(9)] + [("ZCARD", key(1))], list),
        store.ask([("GET", key(n)) for n in range(9)], list),
    )

    assert isinstance(bad, ResponseError)
    assert good == [key(n) for n in range(9)]


async def test_scripts_are_loaded_on_each_node_that_lacks_them(store: Store, joined: Cluster) -> None:
    for node in joined.primaries:
        node.run("SCRIPT", "FLUSH")

    answers = await store.ask([script("last_number").call([f"log{n}"], 0) for n in range(20)], list)

    assert answers == 20 * ["0"]


async def test_reads_follow_moving_slots(store: Store, joined: Cluster) -> None:
    """Reads get the right replies during a move (ASK) and afterwards (MOVED), in both directions."""
    names = [f"{{moving}}:{side}{n}" for side in "ab" for n in range(20)]
    await store.send([("SET", name, name) for name in names])
    slot, source = key_slot(b"moving"), joined.owner("moving")
    target = next(node for node in joined.primaries if node is not source)

    async def read() -> list[Any]:
        reads = [store.ask([("GET", name), ("GET", key(1))], list) for name in names]
        async with asyncio.timeout(PATIENCE):
            return list(await asyncio.gather(*reads))

    expected = [[name, key(1)] for name in names]
    assert await read() == expected
    for giver, taker in ((source, target), (target, source)):
        move(slot, giver, taker, up_to="{moving}:a")
        assert [node.run("CLUSTER", "COUNTKEYSINSLOT", slot) for node in (giver, taker)] == [20, 20]
        assert await read() == expected
        move(slot, giver, taker, up_to="")
        assert await read() == expected
        finish(joined, slot, taker)
        assert await read() == expected


async def test_reads_that_are_redirected_in_a_circle_wait_for_the_map(
    store: Store, joined: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After four redirections, reads wait for the slot map. They are then sent again at most four times a second."""
    slot, source = key_slot(b"circle"), joined.owner("circle")
    target = next(node for node in joined.primaries if node is not source)
    await check(all_of(store))
    source.run("CLUSTER", "SETSLOT", slot, "NODE", target.id)
    for node in joined.nodes:
        node.run("CONFIG", "RESETSTAT")
    monkeypatch.setattr("graph.store.store.ANSWER_SECONDS", 0.5)

    with pytest.raises(StoreUnavailable):
        await store.read([("GET", "circle")])

    errors = [node.run("INFO", "errorstats").get("errorstat_MOVED", {"count": 0}) for node in joined.nodes]
    assert IMMEDIATE_REDIRECTIONS < sum(each["count"] for each in errors) < 4 * IMMEDIATE_REDIRECTIONS
    finish(joined, slot, source)


async def test_reads_survive_the_failure_of_a_primary(tmp_path: Path) -> None:
    """Open reads get the right replies or none; later reads succeed once the replica has taken over."""
    with cluster_in(tmp_path) as cluster:
        async with filled(cluster) as store:
            until(lambda: replicated(cluster))
            await check(all_of(store))
            cluster.owner(key(1)).run("CLIENT", "PAUSE", 60_000, "ALL")
            reads = all_of(store)
            await asyncio.sleep(0.05)
            kill(cluster.owner(key(1)))

            await check(reads)

            async with asyncio.timeout(PATIENCE):
                while await check(all_of(store)):  # noqa: ASYNC110 - a cluster sends no notification
                    await asyncio.sleep(0.1)


def replicated(cluster: Cluster) -> bool:
    """Return True if all keys have reached the replicas."""
    return sum(int(node.run("DBSIZE")) for node in cluster.nodes) == 2 * KEYS


async def test_a_cluster_that_does_not_exist_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The read fails within its deadline."""
    monkeypatch.setattr("graph.store.store.ANSWER_SECONDS", 0.5)
    store = Store("valkey+cluster://127.0.0.1:1")
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(StoreUnavailable):
            await store.ask([("GET", "a")], list)
    waiting = store.ask([("GET", "a")], list)
    await asyncio.sleep(0.01)
    await store.close()
    with pytest.raises(StoreUnavailable):
        await waiting
