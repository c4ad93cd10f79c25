"""Writes to a cluster survive moving slots and failing primaries, and raise no error but StoreUnavailable."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from redis.crc import key_slot
from redis.exceptions import ResponseError

from graph.errors import NotDurable, StoreUnavailable
from graph.store.commands import script
from graph.store.outages import IMMEDIATE_REDIRECTIONS
from graph.store.store import Store
from server.local_cluster import NODE_TIMEOUT
from tests.faults.cluster_load import Load, Write, lost, tag_on
from tests.support.cluster import PRIMARIES, Cluster, Node, cluster_in, kill, until
from tests.support.graph_worlds import PATIENCE, background
from tests.support.slot_moves import finish, move
from tests.support.stopped import stopped

pytestmark = pytest.mark.slow

RECOVERY = 30.0  # far above the usual recovery time, which `benchmarks/failover.py` measures


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run a cluster for the tests that leave it unchanged."""
    with cluster_in(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
async def store(joined: Cluster) -> AsyncIterator[Store]:
    store = Store(joined.url)
    yield store
    await store.close()


def connections_to(cluster: Cluster) -> int:
    """Return the number of connections that redis-py opened, except those of the tests."""
    lists = [node.run("CLIENT", "LIST", "TYPE", "normal") for node in cluster.nodes]
    return sum(str(each).count("lib-name=redis-py") for each in lists) - len(cluster.nodes)


async def test_twenty_first_writes_at_once_succeed(joined: Cluster) -> None:
    for _ in range(5):
        store = Store(joined.url)
        assert await asyncio.gather(*(store.run("SET", f"first{n}", n) for n in range(20))) == 20 * ["OK"]
        await store.close()


async def test_commands_to_all_nodes_have_their_replies_in_order(store: Store) -> None:
    """The commands take one round trip. An error reply is raised after all commands have run."""
    commands = [("SET" if n % 2 else "GET", f"order{n}", *([n] if n % 2 else [])) for n in range(100)]
    await store.send([("SET", f"order{n}", n) for n in range(100)])
    trips = store.round_trips

    assert await store.send(commands) == ["OK" if n % 2 else str(n) for n in range(100)]

    assert store.round_trips == trips + 1
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        await store.send([("ZCARD", "order1"), *(("SET", f"order{n}", "after") for n in range(100))])
    assert await store.read([("GET", f"order{n}") for n in range(100)]) == 100 * ["after"]


async def test_commands_to_a_node_do_not_wait_for_another_one(store: Store, joined: Cluster) -> None:
    """Commands to a node do not wait for a slow node, even if commands to both were sent together."""
    paused, well = joined.primaries[:2]
    names = [f"{{{tag_on(joined, node)}}}:together" for node in (paused, well)]
    await store.send([("UNLINK", name) for name in names])
    paused.run("CLIENT", "PAUSE", 60_000, "WRITE")
    async with background(store.send([("SET", name, 1) for name in names])) as writes:
        try:
            await asyncio.to_thread(until, lambda: well.run("EXISTS", names[1]))
        finally:
            paused.run("CLIENT", "UNPAUSE")
        assert await writes == ["OK", "OK"]


async def test_missing_scripts_are_loaded_on_each_node(store: Store, joined: Cluster) -> None:
    for node in joined.primaries:
        node.run("SCRIPT", "FLUSH")

    assert await store.send([script("last_number").call([f"none{n}"], 0) for n in range(20)]) == 20 * ["0"]


async def test_closing_closes_all_connections(joined: Cluster) -> None:
    """Closing the store closes idle connections and connections that wait for a reply."""
    store = Store(joined.url)
    await asyncio.gather(*(store.run("SET", f"close{n}", n) for n in range(50)))
    await store.read([("GET", f"close{n}") for n in range(50)])
    async with background(store.run("XREAD", "BLOCK", 60_000, "STREAMS", "close", "$")):
        await asyncio.sleep(0.05)
        assert connections_to(joined) >= 3

        await store.close()

    await asyncio.to_thread(until, lambda: connections_to(joined) == 0)


async def test_user_and_password_apply_to_all_nodes(joined: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for node in joined.nodes:
        node.run("ACL", "SETUSER", "writer", "on", ">p@ss,word", "~*", "+@all")
    store = Store(joined.url.replace("://", "://writer:p%40ss,word@"))
    wrong = Store(joined.url.replace("://", "://writer:wrong@"))

    assert set(await asyncio.gather(*(store.run("SET", f"user{n}", n) for n in range(20)))) == {"OK"}
    assert await store.run("ACL", "WHOAMI") == "writer"
    monkeypatch.setattr("graph.store.cluster.ANSWER_SECONDS", 0.3)
    with pytest.raises(StoreUnavailable) as refusal:
        await wrong.run("GET", "user")
    assert "invalid username-password pair" in refusal.value.reason

    await asyncio.gather(store.close(), wrong.close())


async def test_slots_move_both_ways_under_writes(store: Store, joined: Cluster) -> None:
    """No write fails or is lost, during the move (ASK, TRYAGAIN) and afterwards (MOVED)."""
    source, target = joined.primaries[0], joined.primaries[1]
    tag = tag_on(joined, source)
    slot = key_slot(tag.encode())
    async with Load(store, joined, pause=0.001) as load:
        for giver, taker in ((source, target), (target, source)):
            for up_to in (f"{{{tag}}}:1", ""):
                await asyncio.to_thread(move, slot, giver, taker, up_to=up_to)
                await asyncio.sleep(0.1)
            while giver.run("CLUSTER", "COUNTKEYSINSLOT", slot):
                await asyncio.to_thread(move, slot, giver, taker, up_to="")
            await asyncio.to_thread(finish, joined, slot, taker)
            await asyncio.sleep(0.1)

    assert all(write.acknowledged for write in load.writes)
    assert await lost(store, load.writes) == []


async def test_writes_go_to_the_node_that_is_importing_their_slot(store: Store, joined: Cluster) -> None:
    """During the move, writes to moved keys and to new keys go to the importing node."""
    source, target = joined.primaries[0], joined.primaries[1]
    tag = tag_on(joined, source)
    names = [f"{{{tag}}}:{side}{n}" for side in "ab" for n in range(5)]
    await store.send([("SET", name, 1) for name in names])
    slot = key_slot(tag.encode())
    await asyncio.to_thread(move, slot, source, target, up_to=f"{{{tag}}}:a")

    new = f"{{{tag}}}:new"
    assert await store.send([*(("INCR", name) for name in names), ("INCR", new), ("GET", "x")]) == [*10 * [2], 1, None]
    target.run("SCRIPT", "FLUSH")
    assert await store.run(*script("last_number").call([f"{{{tag}}}:none"], 0)) == "0"

    for giver, taker in ((source, target), (target, source)):
        await asyncio.to_thread(move, slot, giver, taker, up_to="")
        await asyncio.to_thread(finish, joined, slot, taker)
    assert await store.send([("INCR", name) for name in (*names, new)]) == [*10 * [3], 2]


async def test_redirections_in_a_circle_wait_for_the_map_after_the_fourth(
    store: Store, joined: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store waits for the slot map after four redirections, even if the commands go to several nodes."""
    source, target = joined.primaries[:2]
    tag, other = tag_on(joined, source, "circle"), tag_on(joined, target)
    await store.send([("GET", f"{{{tag}}}:none"), ("GET", f"{{{other}}}:none")])
    source.run("CLUSTER", "SETSLOT", key_slot(tag.encode()), "NODE", target.id)
    for node in joined.nodes:
        node.run("CONFIG", "RESETSTAT")
    monkeypatch.setattr("graph.store.cluster.ANSWER_SECONDS", 0.0)

    with pytest.raises(StoreUnavailable):
        await store.send([("GET", f"{{{tag}}}:none"), ("GET", f"{{{other}}}:none")])

    errors = [node.run("INFO", "errorstats").get("errorstat_MOVED", {"count": 0}) for node in joined.nodes]
    assert sum(each["count"] for each in errors) == IMMEDIATE_REDIRECTIONS + 1
    await asyncio.to_thread(finish, joined, key_slot(tag.encode()), source)


async def test_writes_survive_primaries_that_hang_and_die(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes to other shards are not delayed, and writes to the shard only until its replica has taken over.

    No durable write that was acknowledged is lost.
    """
    monkeypatch.setattr("graph.store.cluster.ANSWER_SECONDS", RECOVERY)  # for a failover on a busy machine
    monkeypatch.setattr("graph.store.node.REPLICATION_SECONDS", 0.5)
    with cluster_in(tmp_path) as cluster:
        store, durable = Store(cluster.url), Store(cluster.url, wait_for_replicas=1)
        hung, killed, _ = cluster.primaries
        before = await store.primaries()
        async with Load(store, cluster) as load, Load(durable, cluster, name="durable") as safe:
            await asyncio.gather(progress(load), progress(safe))
            with stopped(hung.pid):
                began = time.monotonic()
                await recovered(load, hung, began)
                reads = [store.read([("GET", write.key)]) for write in load.of(hung)[-20:]]
                assert len(await asyncio.gather(*reads)) == 20
            check_others(load, hung, began)
            await asyncio.to_thread(until, cluster.is_complete)
            await asyncio.gather(progress(load), progress(safe))
            began = time.monotonic()
            kill(killed)
            await recovered(load, killed, began)
            check_others(load, killed, began)
            await progress(load)

        assert all(write.acknowledged for write in load.writes)
        assert await lost(store, safe.writes) == []
        assert sum(write.acknowledged for write in safe.of(hung, killed)) > 50
        after = await store.primaries()
        assert len(before) == len(after) == 3
        assert len(set(before.items()) - set(after.items())) == 2
        await asyncio.gather(store.close(), durable.close())


async def test_an_idle_client_learns_that_primaries_were_killed_and_demoted(tmp_path: Path) -> None:
    """Commands to all primaries, a scan of all keys, and a wait for replicas each learn of new primaries."""
    with cluster_in(tmp_path) as cluster:
        victim, *_ = cluster.primaries
        tag = tag_on(cluster, victim)
        asking, scanning, replicating = stores = [Store(cluster.url) for _ in range(3)]
        before = await asking.primaries()
        for store in stores:
            assert await store.primaries() == before
        kill(victim)

        async with asyncio.timeout(RECOVERY):
            while len(after := await asking.primaries()) < 3 or after == before:  # noqa: ASYNC110 - a cluster sends no notification
                await asyncio.sleep(0.05)
        for use in (partial(listed, scanning), partial(replicating.replicate, f"{{{tag}}}", 100)):
            with pytest.raises(StoreUnavailable):
                await use()
            await succeeded(use)

        assert len(set(before) - set(after)) == len(set(after) - set(before)) == 1
        promoted = cluster.nodes[4]
        promoted.run("CLUSTER", "FAILOVER")
        async with asyncio.timeout(RECOVERY):
            while f"127.0.0.1:{promoted.port}" not in await asking.primaries():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await asyncio.gather(*(store.close() for store in stores))


async def succeeded(use: Callable[[], Awaitable[object]]) -> None:
    """Use a store repeatedly until it is available."""
    async with asyncio.timeout(RECOVERY):
        while True:
            with suppress(StoreUnavailable):
                await use()
                return
            await asyncio.sleep(0.05)


async def listed(store: Store) -> list[str]:
    return [key async for keys in store.scan("*") for key in keys]


async def progress(load: Load) -> None:
    """Wait until each writer has made a few more writes."""
    enough = len(load.writes) + 10 * load.writers * PRIMARIES
    async with asyncio.timeout(RECOVERY):
        while len(load.writes) < enough:  # noqa: ASYNC110 - the load sends no notification
            await asyncio.sleep(0.02)


async def recovered(load: Load, node: Node, since: float) -> None:
    """Wait until a write to a node's shard is acknowledged more than 0.2 seconds after a given time."""
    async with asyncio.timeout(RECOVERY):
        while not any(map(partial(is_back, since), load.of(node))):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def is_back(since: float, write: Write) -> bool:
    return write.acknowledged and write.began + write.seconds > since + 0.2


def check_others(load: Load, node: Node, fault: float) -> None:
    """Assert that writers to the other shards continued during the failure of a node's shard."""
    back = min(write.began + write.seconds for write in load.of(node) if is_back(fault, write))
    meanwhile = [write for write in load.others(node) if fault < write.began < write.began + write.seconds < back]
    assert len(meanwhile) > 2 * load.writers * (PRIMARIES - 1)


async def test_a_cluster_that_hangs_is_unavailable(joined: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """While all nodes hang, each command fails with StoreUnavailable, even the first command of a client."""
    store, fresh = Store(joined.url), Store(joined.url)
    await store.run("SET", "a", 1)
    for module in ("cluster", "store"):
        monkeypatch.setattr(f"graph.store.{module}.ANSWER_SECONDS", 0.5)
    for node in joined.nodes:
        node.run("CONFIG", "SET", "cluster-node-timeout", 60_000)  # no replica takes over
    with stopped(*(node.pid for node in joined.nodes)):
        calls = [client.run("SET", f"k{n}", n) for client in (store, fresh) for n in range(20)]
        async with asyncio.timeout(PATIENCE):
            outcomes = await asyncio.gather(*calls, store.read([("GET", "a")]), return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {StoreUnavailable}
    async with asyncio.timeout(PATIENCE):
        while await is_down(store) or await is_down(fresh):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    for node in joined.nodes:
        node.run("CONFIG", "SET", "cluster-node-timeout", NODE_TIMEOUT)
    await asyncio.gather(store.close(), fresh.close())


async def is_down(store: Store) -> bool:
    try:
        await asyncio.gather(*(store.run("SET", f"k{n}", n) for n in range(20)))
    except StoreUnavailable:
        return True
    return False


@pytest.fixture
async def durable_store(joined: Cluster) -> AsyncIterator[Store]:
    store = Store(joined.url, wait_for_replicas=1)
    yield store
    await store.close()


async def test_a_durable_write_waits_for_the_replicas(
    joined: Cluster, durable_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A durable write fails if the replicas do not answer. Reads do not wait, and other shards are not affected."""
    monkeypatch.setattr("graph.store.node.REPLICATION_SECONDS", 0.3)
    store = durable_store
    primary, replica = joined.primaries[0], joined.nodes[PRIMARIES]
    tag, other = tag_on(joined, primary), tag_on(joined, joined.primaries[1])
    await succeeded(lambda: store.send([("SET", f"{{{tag}}}a", 1), ("SET", f"{{{other}}}a", 1)]))
    waits = primary.run("INFO", "commandstats")["cmdstat_wait"]["calls"]
    with stopped(replica.pid):
        with pytest.raises(NotDurable, match="same idempotency key"):
            await store.run("SET", f"{{{tag}}}b", 1)
        async with asyncio.timeout(PATIENCE):
            assert await store.run("GET", f"{{{tag}}}b") == "1"
            await succeeded(lambda: store.run("SET", f"{{{other}}}b", 1))
        assert primary.run("INFO", "commandstats")["cmdstat_wait"]["calls"] == waits + 1
        async with asyncio.timeout(PATIENCE):
            other_process = Store(joined.url, wait_for_replicas=1)
            with pytest.raises(NotDurable):  # even though it writes nothing
                await other_process.run("SET", f"{{{tag}}}b", 1, "NX")
            await other_process.close()
    await succeeded(lambda: store.run("SET", f"{{{tag}}}c", 1))
