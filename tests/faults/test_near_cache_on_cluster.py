"""The near cache on a cluster: slots move, primaries fail over, and no request sees a value from before its start."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.crc import key_slot
from redis.exceptions import MovedError

from graph.store.commands import Command
from graph.store.near_cache import Moment
from graph.store.reads import Read
from graph.store.recall import LookUp, recall
from graph.store.store import Store
from graph.store.topology import SlotMap
from tests.support.cluster import Cluster, Node, cluster_in, until
from tests.support.graph_worlds import PATIENCE, counted
from tests.support.slot_moves import finish, move, move_at_once

pytestmark = pytest.mark.slow

KEYS = 12
WRITES = 300
MOVES = 6
READERS = 4
SAME = "near0"
"""The hash tag of keys that are in the slot of the first key."""


def key_of(number: int) -> str:
    return f"{{near{number}}}" if number < KEYS else f"{{{SAME}}}:{number}"


VALUES: LookUp[str | None] = LookUp("GET", key_of, (), lambda _, rows: rows)
ALL = range(KEYS)


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run a cluster."""
    with cluster_in(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
async def writer(joined: Cluster) -> AsyncIterator[Store]:
    """Open the store of another process, which has written 0 to each key."""
    writer = Store(joined.url)
    await writer.send([("DEL", key_of(KEYS + 1))])
    await writer.send([("SET", key_of(n), 0) for n in (*ALL, KEYS)])
    yield writer
    await writer.close()


@pytest.fixture
async def store(joined: Cluster) -> AsyncIterator[Store]:
    """Open a store with a near cache and connections to all primaries."""
    store = Store(joined.url, near_cache=1000)
    async with asyncio.timeout(PATIENCE):
        await store.read([("EXISTS", key_of(n)) for n in ALL])
        yield store
    await store.close()


async def request(store: Store) -> Moment | None:
    """Start a request that may use values of all nodes after its first read."""
    moment = store.begin()
    store.expect(moment)
    await store.read([("EXISTS", "session")])
    return moment


async def usable(store: Store, *numbers: int) -> Moment | None:
    """Start a request after nodes have answered, so that it can look up values without commands."""
    for _ in range(1000):
        moment = await request(store)
        async with counted(store) as cost:
            await recall(store, VALUES, numbers, moment)
        if not cost.commands:
            return moment
    raise AssertionError("the values are not near")


async def look(store: Store, *numbers: int) -> list[str | None]:
    """Return the values that a new request sees after its first read."""
    return await recall(store, VALUES, numbers, await request(store))


def other_than(joined: Cluster, source: Node) -> Node:
    return next(node for node in joined.primaries if node is not source)


def elsewhere(joined: Cluster, node: Node) -> int:
    """Return the number of a key of this node in a slot other than the first key's."""
    return next(n for n in range(1, KEYS) if joined.owner(key_of(n)) is node)


def move_back(joined: Cluster, slot: int, source: Node, target: Node) -> None:
    move(slot, target, source, up_to="")
    finish(joined, slot, source)


async def test_known_values_of_all_nodes_cost_no_command(store: Store, writer: Store) -> None:
    """The first round trip of a request also reads a key of each other node, so that the request can use its values."""
    assert {*await look(store, *ALL)} == {"0"}
    await usable(store, *ALL)

    async with counted(store) as first:
        moment = await request(store)
    assert (first.round_trips, first.commands) == (1, 3)

    moment = store.begin()
    async with counted(store) as plain:
        await store.read([("EXISTS", "session")])
    assert (plain.round_trips, plain.commands) == (1, 1)
    known, _ = store.near.find([key_of(n) for n in ALL], moment or 0) if store.near else ([], [])
    assert known.count("0") == len([n for n in ALL if owner_name(store, key_of(n)) == owner_name(store, "session")])


def owner_name(store: Store, key: str) -> str | int:
    client: Any = store._client
    return str(client.topology.owner_of(key))


async def test_writes_to_all_nodes_are_noticed(store: Store, writer: Store) -> None:
    """The next request notices the writes, whichever connection the invalidation takes."""
    for count in range(30):
        await writer.send([("SET", key_of(n), count) for n in ALL])
        assert await look(store, *ALL) == [str(count)] * KEYS


async def test_absent_keys_are_not_kept(store: Store, writer: Store) -> None:
    """Values that may mean an absent key, such as an empty set, are not kept either."""
    sizes: LookUp[int] = LookUp("ZCARD", lambda n: f"{{size{n}}}", (), lambda _, rows: rows)
    for _ in range(2):
        assert await recall(store, sizes, [1, 2], await request(store)) == [0, 0]
        assert await look(store, KEYS + 1) == [None]

    assert store.near is not None
    assert len(store.near) == 0


@pytest.mark.parametrize("way", ["by key", "at once"])
async def test_keys_that_have_moved_are_read_again(store: Store, writer: Store, joined: Cluster, way: str) -> None:
    """The process talks only to the old node, which does not report writes to the new node."""
    slot, source = key_slot(SAME.encode()), joined.owner(key_of(0))
    target, other, absent = other_than(joined, source), elsewhere(joined, source), KEYS + 1
    await usable(store, other)
    await look(store, 0, KEYS, absent)

    if way == "by key":
        move(slot, source, target, up_to="")
        finish(joined, slot, target)
    else:
        move_at_once(joined, slot, source, target)
    for number in (0, KEYS, absent):
        target.run("SET", key_of(number), "new")
    await usable(store, other)

    assert await look(store, 0, KEYS, absent) == ["new", "new", "new"]
    await usable(store, 0, KEYS, absent)
    move_back(joined, slot, source, target)


def serves(node: Node, tag: str) -> bool:
    """Return True if a node considers itself the owner of a tag's slot."""
    try:
        node.run("EXISTS", tag)
    except MovedError:
        return False
    return True


async def test_what_a_node_imports_is_not_kept(store: Store, writer: Store, joined: Cluster) -> None:
    """Reads that are redirected to the importing node return the right value."""
    slot, source = key_slot(SAME.encode()), joined.owner(key_of(0))
    target = other_than(joined, source)
    await look(store, *ALL)
    move(slot, source, target, up_to="")
    assert store.near is not None

    for number in range(3):
        await writer.send([("SET", key_of(0), number)])
        assert await look(store, 0) == [str(number)]
        assert not store.near.holds([key_of(0)])
    finish(joined, slot, target)
    assert await look(store, 0) == ["2"]
    await usable(store, 0)
    move_back(joined, slot, source, target)


async def test_values_of_a_demoted_primary_are_not_used(tmp_path: Path) -> None:
    """The connection remains and reports writes, but answers reads only with a redirection."""
    with cluster_in(tmp_path) as cluster:
        store = Store(cluster.url, near_cache=1000)
        try:
            async with asyncio.timeout(PATIENCE):
                await store.send([("SET", key_of(n), 0) for n in ALL])
                await usable(store, *ALL)
                source = cluster.owner(key_of(0))
                await fail_over(store, source, cluster.nodes[cluster.nodes.index(source) + len(cluster.primaries)])
        finally:
            await store.close()


async def fail_over(store: Store, primary: Node, heir: Node) -> None:
    """Let a replica take over, write to it, and check that a request sees the write."""
    client: Any = store._client
    heir.run("CLUSTER", "FAILOVER")
    until(lambda: serves(heir, SAME) and not serves(primary, SAME))
    primary.run("CONFIG", "SET", "masterauth", "wrong")  # so that it receives no more writes
    heir.run("CLIENT", "KILL", "TYPE", "replica")
    heir.run("SET", key_of(0), "new")

    moment = await request(store)
    while client.reads.waiting:  # noqa: ASYNC110 - until the nodes have answered the reads of other keys, too
        await asyncio.sleep(0)
    assert await recall(store, VALUES, [0], moment) == ["new"]


@pytest.mark.parametrize("way", ["map", "redirection"])
async def test_slots_that_others_own_are_forgotten(store: Store, writer: Store, way: str) -> None:
    """Another node learned of the move first. Values of nodes that have lost no slots remain."""
    client: Any = store._client
    await usable(store, *ALL)
    owners = [owner_name(store, key_of(n)) for n in ALL]
    loser = owners[0]
    gainer = next(name for name in client.topology.primaries if name != loser)
    found = [(slot, slot, gainer if name == loser else name) for slot, name in enumerate(client.topology._owners)]

    if way == "map":
        await client.topology._use(SlotMap(healthy=True, epoch=1, ranges=tuple(found), names=client.topology._names))
    else:
        error = MovedError(f"{key_slot(SAME.encode())} {gainer}")
        source = client.topology.node(owner_name(store, key_of(0)))
        for _ in range(2):  # as a page with two commands in the slot
            client.topology.moved(error, source)

    assert store.near is not None
    assert [store.near.holds([key_of(n)]) for n in ALL] == [name != loser for name in owners]


async def test_nothing_is_kept_from_nodes_that_do_not_track_keys(store: Store, writer: Store) -> None:
    """Servers after a failover may refuse to track keys."""
    client: Any = store._client
    loop = asyncio.get_running_loop()
    for node in client.topology.nodes.values():
        node.reads.send([Read([("CLIENT", "TRACKING", "OFF")], list, loop.create_future())])

    for _ in range(2):
        assert await look(store, *ALL) == ["0"] * KEYS
    assert store.near is not None
    assert len(store.near) == 0


async def test_no_request_sees_a_value_from_before_it_began_while_slots_move(
    store: Store, writer: Store, joined: Cluster
) -> None:
    """Writers use plain commands and scripts, slots move atomically and key by key, and connections are killed."""
    assert store.near is not None
    rng, near = random.Random(1), store.near  # noqa: S311 - a repeatable order
    acknowledged, moved, done = [0] * KEYS, [0], asyncio.Event()

    async def write() -> None:
        while moved[0] < MOVES or near.hits < WRITES or sum(acknowledged) < WRITES:
            number = rng.choice(ALL)
            change = acknowledged[number] + 1
            script = "return redis.call('SET', KEYS[1], ARGV[1])"
            plain: Command = ("SET", key_of(number), change)
            await writer.send([rng.choice([plain, ("EVAL", script, 1, key_of(number), change)])])
            acknowledged[number] = change

    async def read() -> None:
        while not done.is_set():
            least = list(acknowledged)
            moment = await request(store) if rng.random() < 0.9 else store.begin()
            for _ in range(rng.randrange(1, 4)):
                numbers = rng.sample(ALL, 3)
                for number, value in zip(numbers, await recall(store, VALUES, numbers, moment), strict=True):
                    assert int(value or 0) >= least[number], "a value from before the request, or from before another"
                    least[number] = int(value or 0)

    async def shift() -> None:
        """Move the slots of keys away and back."""
        for number in itertools.cycle(ALL):
            if done.is_set():
                return
            source = joined.owner(key_of(number))
            await asyncio.to_thread(shift_one, joined, key_of(number), source)
            await asyncio.to_thread(source.run, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            moved[0] += 1

    async with asyncio.TaskGroup() as group:
        others = [group.create_task(work()) for work in (*[read] * READERS, shift)]
        try:
            await write()
        finally:
            done.set()
        await asyncio.gather(*others)


def shift_one(joined: Cluster, key: str, source: Node) -> None:
    """Move a key's slot away atomically, and move it back key by key."""
    slot, target = key_slot(key.encode()), other_than(joined, source)
    move_at_once(joined, slot, source, target)
    move_back(joined, slot, source, target)
