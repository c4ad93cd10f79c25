"""The store: shared round trips, error replies, outages, and keys for clusters."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from graph import Graph
from graph.errors import Overloaded, StoreFull, StoreUnavailable
from graph.store import capacity
from graph.store.commands import SlotError, check_slots, keys_of, script
from graph.store.store import Store
from graph.store.urls import check_url
from server.embedded import Durability, EmbeddedStore
from tests.conftest import CHEAP
from tests.support.graph_worlds import (
    PATIENCE,
    background,
    counted,
    home,
    outcomes_of,
    people,
    posts,
    reached,
    reconnected,
)
from tests.support.graphs import open_graph
from tests.support.tcp_proxy import proxy_to


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[EmbeddedStore]:
    """Run a server that tests may kill."""
    with EmbeddedStore(tmp_path, Durability.SAFE) as server:
        yield server


@pytest.fixture
async def doomed(own_server: EmbeddedStore) -> AsyncIterator[Graph]:
    """Open a graph on a server that tests may kill."""
    graph = await open_graph(own_server.url, CHEAP, partial(Store, single_slot=True))
    yield graph
    await graph.close()


def kill(server: EmbeddedStore) -> None:
    """Kill a server and wait until it is dead."""
    os.kill(server.pid, signal.SIGKILL)
    while True:
        with socket.socket(socket.AF_UNIX) as caller:
            if caller.connect_ex(str(server.socket)) != 0:
                return


async def test_reads_of_one_tick_share_a_round_trip(graph: Graph) -> None:
    """Each read gets its own replies."""
    await graph.store.send([("SET", f"k{n}", n) for n in range(50)])

    async with counted(graph) as cost:
        answers = await asyncio.gather(*(graph.store.read([("GET", f"k{n}"), ("EXISTS", f"k{n}")]) for n in range(50)))

    assert answers == [[str(n), 1] for n in range(50)]
    assert (cost.round_trips, cost.commands) == (1, 100)


async def test_reads_of_different_ticks_do_not_wait_for_each_other(graph: Graph) -> None:
    async with counted(graph) as cost:
        for _ in range(3):
            await graph.store.read([("GET", "k")])

    assert cost.round_trips == 3


async def test_an_empty_read_costs_nothing(graph: Graph) -> None:
    async with counted(graph) as cost:
        assert await graph.store.read([]) == []
        assert await graph.store.send([]) == []

    assert (cost.round_trips, cost.commands) == (0, 0)


async def test_cancelling_a_read_does_not_affect_other_reads(graph: Graph) -> None:
    """The other reads of the round trip get their own replies."""
    await graph.store.send([("SET", f"k{n}", n) for n in range(100)])
    for ticks in range(6):
        readers = [asyncio.create_task(graph.store.read([("GET", f"k{n}")])) for n in range(100)]
        for _ in range(ticks):
            await asyncio.sleep(0)
        for reader in readers[::2]:
            reader.cancel()

        answers = await asyncio.gather(*readers, return_exceptions=True)

        assert answers[1::2] == [[str(n)] for n in range(1, 100, 2)]


async def test_cancelling_a_command_does_not_mix_up_replies(graph: Graph) -> None:
    """No caller receives the reply to a cancelled command."""
    await graph.store.send([("SET", f"k{n}", n) for n in range(60)])

    async def ask(n: int) -> None:
        for _ in range(5):
            assert await graph.store.run("GET", f"k{n}") == str(n)
            assert await graph.store.send([("GET", f"k{n}"), ("ECHO", n)]) == [str(n), str(n)]

    askers = [asyncio.create_task(ask(n)) for n in range(60)]
    for n, asker in enumerate(askers[::3]):
        for _ in range(n % 7):
            await asyncio.sleep(0)
        asker.cancel()

    done = await asyncio.gather(*askers, return_exceptions=True)

    assert [outcome for n, outcome in enumerate(done) if n % 3] == 40 * [None]
    assert all(outcome is None or isinstance(outcome, asyncio.CancelledError) for outcome in done)


async def test_a_cancellation_is_never_swallowed(graph: Graph) -> None:
    """A cancelled task ends at every point of an exchange; otherwise a shutdown would hang."""

    async def ask_for_ever() -> None:
        while True:
            await graph.store.send([("GET", "a"), ("GET", "b")])
            await graph.store.run("GET", "a")

    for ticks in range(200):
        async with background(ask_for_ever()) as task:
            for _ in range(20 + ticks % 23):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task], timeout=0.5)
            assert task.cancelled()


async def test_an_error_reply_reaches_only_its_caller(graph: Graph) -> None:
    await graph.store.run("SET", "text", "x")

    good, bad, other = await outcomes_of(
        graph.store.read([("GET", "text")]),
        graph.store.read([("GET", "text"), ("ZCARD", "text")]),
        graph.store.read([("EXISTS", "text")]),
    )

    assert (good, other) == (["x"], [1])
    assert isinstance(bad, ResponseError)
    assert "WRONGTYPE" in str(bad)


async def test_an_error_in_a_pipeline_is_raised_after_all_ran(graph: Graph) -> None:
    """The first error is raised, and the other commands are executed."""
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        await graph.store.send([("SET", "a", 1), ("ZCARD", "a"), ("SET", "b", 2)])

    assert await graph.store.read([("GET", "a"), ("GET", "b")]) == ["1", "2"]


async def test_scripts_are_loaded_when_they_are_missing(graph: Graph, raw: Redis) -> None:
    """Scripts are loaded for a single command and for one of several commands."""
    await raw.script_flush()
    assert await graph.store.run(*script("last_number").call(["{log}"], 0)) == "0"

    await raw.script_flush()
    call = script("add").call(["s{1}", "s{1}:gone"], 2, '[["5", "x"]]')
    assert await graph.store.send([("SET", "a", 1), call, ("GET", "a"), call]) == ["OK", 1, "1", 0]


async def test_a_server_that_gets_busy_before_scripts_are_loaded_is_unavailable(own_server: EmbeddedStore) -> None:
    client = Redis(unix_socket_path=str(own_server.socket))
    await client.config_set("busy-reply-threshold", 1)
    async with proxy_to(own_server.socket) as proxy, client:
        store = Store(f"valkey://127.0.0.1:{proxy.port}")
        await store.ping()
        busy = asyncio.Event()

        async def wait_for_busy(data: bytes, caller: asyncio.StreamWriter) -> None:
            if b"NOSCRIPT" in data:
                busy.set()
                await asyncio.sleep(0.2)
            caller.write(data)

        async def occupy() -> None:
            await busy.wait()
            await client.eval("while true do end", 0)

        proxy.replies = wait_for_busy
        async with background(occupy()):
            [outcome] = await outcomes_of(store.run(*script("last_number").call(["{log}"], 0)))
            with own_server.client() as other:
                other.script_kill()
        assert isinstance(outcome, StoreUnavailable)
        assert "BUSY" in outcome.reason
        await store.close()


@pytest.mark.parametrize(
    ("command", "keys"),
    [
        (("GET", "a"), ("a",)),
        (("ZADD", "a", 1, "b"), ("a",)),
        (("DEL", "a", "b"), ("a", "b")),
        (("EXISTS", "a", "b"), ("a", "b")),
        (("EVALSHA", "0", 2, "a", "b", "c"), ("a", "b")),
        (("XGROUP", "CREATE", "a", "g", "0"), ("a",)),
        (("XINFO", "STREAM", "a"), ("a",)),
        (("XREADGROUP", "GROUP", "g", "c", "COUNT", 1, "STREAMS", "a", ">"), ("a",)),
        (("PING",), ()),
    ],
)
def test_the_keys_of_a_command_are_known(command: tuple[str | int, ...], keys: tuple[str, ...]) -> None:
    assert keys_of(command) == keys


async def test_keys_of_two_slots_are_refused(graph: Graph) -> None:
    """The error is raised before the command is sent."""
    with pytest.raises(SlotError, match="different slots"):
        await graph.store.run("DEL", "user:{1}", "user:{2}")
    with pytest.raises(SlotError):
        check_slots([script("add").call(["following:{1}", "followers:{2}"], 2, "[[]]")])

    assert await graph.store.run("DEL", "user:{1}", "following:{1}") == 0


@pytest.mark.parametrize("url", ["http://x", "mysql://x", "localhost:6379", "", "valkey+cluster//x:1"])
async def test_a_url_of_another_kind_is_refused(url: str) -> None:
    """The message lists the supported schemes."""
    with pytest.raises(ValueError, match="must begin with one of valkey"):
        check_url(url)


async def test_a_store_that_does_not_exist_is_unavailable(tmp_path: Path) -> None:
    """Opening the graph does not connect; each use raises StoreUnavailable."""
    graph = await open_graph(f"unix://{tmp_path}/nothing", CHEAP)

    for use in (graph.store.ping(), graph.users.get_many([1]), graph.posts.publish(1, "x"), graph.log.watermark()):
        with pytest.raises(StoreUnavailable):
            await use
    await graph.close()


async def test_after_a_restart_of_the_store_the_same_graph_works(own_server: EmbeddedStore, doomed: Graph) -> None:
    """During the outage all calls raise StoreUnavailable."""
    [alice] = await people(doomed, "alice")
    written = await posts(doomed, alice, "before")
    kill(own_server)

    outcomes = await asyncio.gather(
        doomed.store.ping(),
        doomed.users.get_many([alice]),
        doomed.posts.publish(alice, "lost"),
        doomed.log.watermark(),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == 4 * [StoreUnavailable]

    own_server.ensure()
    await reconnected(doomed)
    written += await posts(doomed, alice, "after")
    await doomed.worker().drain()
    assert await home(doomed, alice) == written[::-1]


async def test_the_worker_and_the_feed_survive_a_killed_store(own_server: EmbeddedStore, doomed: Graph) -> None:
    """Posts published afterwards are projected and streamed."""
    [alice] = await people(doomed, "alice")
    stream = doomed.feed.home(alice)
    await anext(stream)
    async with background(doomed.worker(timedelta(milliseconds=200)).run()):
        kill(own_server)
        with pytest.raises(StoreUnavailable):
            await doomed.store.ping()
        own_server.ensure()
        await reconnected(doomed)
        [post] = await posts(doomed, alice, "after")

        async with asyncio.timeout(PATIENCE):
            assert (await anext(stream)).number == post
        await reached(doomed.log.watermark, post)
    await stream.aclose()


async def test_a_store_that_became_a_replica_is_unavailable(own_server: EmbeddedStore, doomed: Graph) -> None:
    """After a failover, the former primary refuses writes. This counts as an outage, not as an error of the request."""
    [alice] = await people(doomed, "alice")
    await doomed.store.run("CONFIG", "SET", "replica-serve-stale-data", "yes")
    await doomed.store.run("REPLICAOF", "127.0.0.1", 1)

    with pytest.raises(StoreUnavailable):
        await doomed.posts.publish(alice, "lost")
    await doomed.store.run("REPLICAOF", "NO", "ONE")
    await posts(doomed, alice, "after")


async def test_a_replica_without_its_primary_is_unavailable(own_server: EmbeddedStore, doomed: Graph) -> None:
    """Single and shared reads both fail."""
    await doomed.store.run("CONFIG", "SET", "replica-serve-stale-data", "no")
    await doomed.store.run("REPLICAOF", "127.0.0.1", 1)

    with pytest.raises(StoreUnavailable):
        await doomed.users.get_many([1])
    with pytest.raises(StoreUnavailable):
        await asyncio.gather(doomed.users.get_many([1]), doomed.log.watermark())


async def test_a_full_store_is_overloaded(
    own_server: EmbeddedStore, doomed: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writes fail until there is memory again."""
    monkeypatch.setattr(capacity, "REFRESH_SECONDS", 0.0)
    [alice] = await people(doomed, "alice")
    await doomed.store.run("CONFIG", "SET", "maxmemory", "1")

    with pytest.raises(Overloaded, match="The store is full"):
        await doomed.posts.publish(alice, "lost")
    with pytest.raises(StoreFull):
        await doomed.store.run("SET", "key", "value")
    await doomed.store.run("CONFIG", "SET", "maxmemory", "0")
    await doomed.capacity.read()
    await posts(doomed, alice, "after")
