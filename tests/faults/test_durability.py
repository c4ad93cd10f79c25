"""With `wait_for_replicas`, a mutation that replicas have not received is not acknowledged, and can be repeated."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from graph.errors import NotDurable, StoreUnavailable
from graph.store.store import Store
from tests.conftest import CHEAP
from tests.support.cluster import until
from tests.support.graph_worlds import people
from tests.support.graphs import empty, open_graph
from tests.support.pair import Pair, Server, pair_in
from tests.support.stopped import stopped
from tests.support.tcp_proxy import proxy_to

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def running_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Run a primary and its replica."""
    with pair_in(tmp_path_factory.mktemp("pair")) as pair:
        yield pair


@pytest.fixture
def pair(running_pair: Pair) -> Pair:
    """Return an empty primary and its replica."""
    running_pair.renew()
    return running_pair


@contextmanager
def silent(server: Server) -> Iterator[None]:
    """Freeze a replica, and let writes wait for it only briefly."""
    with pytest.MonkeyPatch.context() as patch, stopped(server.process.pid):
        patch.setattr("graph.store.node.REPLICATION_SECONDS", 0.3)
        yield


async def test_a_repeated_post_is_published_once(pair: Pair) -> None:
    """The repetition, even by another process, writes nothing and waits until the replica has the first write."""
    empty(pair.primary.url)
    graphs = [await open_graph(pair.primary.url, CHEAP, partial(Store, wait_for_replicas=1)) for _ in range(2)]
    [alice] = await people(graphs[0], "alice")
    await graphs[1].binding.check()
    with silent(pair.replica):
        for graph in graphs:
            with pytest.raises(NotDurable):
                await graph.posts.publish(alice, "text", idempotency_key="key")
            if graph is graphs[0]:
                number = await graph.log.last()

    for graph in graphs:
        assert (await graph.posts.publish(alice, "text", idempotency_key="key")).id == number
    assert pair.replica.run("XLEN", "{log}") == pair.primary.run("XLEN", "{log}")
    for graph in graphs:
        await graph.close()


async def test_a_write_waits_for_all_connected_replicas(pair: Pair, tmp_path: Path) -> None:
    """The store waits for each connected replica, even if fewer are required, because each of them may take over."""
    another = Server(tmp_path / "another")
    another.run("REPLICAOF", "127.0.0.1", pair.primary.port)
    until(lambda: len(pair.primary.run("ROLE")[2]) == 2)
    store = Store(pair.primary.url, wait_for_replicas=1)
    with silent(pair.replica):
        for _ in range(2):
            with pytest.raises(NotDurable):
                await store.run("SET", "a", 1)
    until(pair.is_level)
    await store.run("SET", "a", 2)
    await store.close()
    another.end()


async def test_a_write_to_a_server_that_is_no_primary_any_more_is_not_acknowledged(pair: Pair) -> None:
    """The demoted server has executed the write, but its successor lacks it."""

    async def demote(data: bytes, client: asyncio.StreamWriter) -> None:
        client.write(data.replace(b"$6\r\nmaster", b"$5\r\nslave"))

    async with proxy_to(pair.primary.socket) as proxy:
        store = Store(f"valkey://127.0.0.1:{proxy.port}", wait_for_replicas=1)
        await store.run("SET", "a", 1)
        proxy.replies = demote
        with pytest.raises(StoreUnavailable) as refusal:
            await store.run("SET", "a", 2)
        assert "changed during the write" in refusal.value.reason
        await store.close()
