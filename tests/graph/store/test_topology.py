"""The information that a cluster's nodes give about slots."""

import asyncio
from dataclasses import replace

import pytest
from redis.crc import key_slot

from graph.errors import StoreUnavailable
from graph.store.store import Store
from graph.store.topology import SlotMap, freshest
from server.embedded import EmbeddedStore
from tests.support.graph_worlds import PATIENCE
from tests.support.tcp_proxy import TcpProxy, proxy_to

INFO = "cluster_state:ok\r\ncluster_slots_ok:16384\r\ncluster_current_epoch:7\r\n"
FIRST = [0, 99, ["10.0.0.1", 1, "a", []], ["10.0.0.2", 2, "b", []]]


def test_a_map_has_the_owner_of_each_range_and_all_nodes() -> None:
    parsed = SlotMap.parse("node:6379", INFO, [FIRST, [100, 100, ["::1", 3, "c", []]]])

    assert parsed.healthy
    assert parsed.epoch == 7
    assert parsed.ranges == ((0, 99, "10.0.0.1:1"), (100, 100, "::1:3"))
    assert parsed.names == {"10.0.0.1:1", "10.0.0.2:2", "::1:3"}


def test_a_node_without_an_address_has_that_of_the_node_that_names_it() -> None:
    """`?` stands for an unknown address: the slots of such a node have no owner."""
    parsed = SlotMap.parse("node:6379", INFO, [[0, 1, [None, 1, "a"]], [2, 3, ["", 2, "b"]], [4, 5, ["?", 3, "c"]]])

    assert parsed.ranges == ((0, 1, "node:1"), (2, 3, "node:2"))
    assert parsed.names == {"node:1", "node:2"}


def test_the_map_with_the_highest_epoch_counts_unless_its_node_sees_no_majority() -> None:
    old = SlotMap.parse("node:6379", INFO, [FIRST])
    new = replace(old, epoch=8)
    alone = replace(old, epoch=9, healthy=False)

    assert freshest([old, alone, new, old]) is new
    assert freshest([alone]) is alone


@pytest.fixture
def server(single_store: EmbeddedStore, store_url: str) -> EmbeddedStore:
    """Return the empty server."""
    return single_store


@pytest.mark.single_server("a proxy stands before the server")
async def test_a_map_that_cannot_be_read_is_an_outage(server: EmbeddedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The map is requested again at most four times a second."""
    monkeypatch.setattr("graph.store.cluster.ANSWER_SECONDS", 0.6)
    asked = 0
    async with proxy_to(server.socket) as proxy:
        store = Store(f"valkey+cluster://127.0.0.1:{proxy.port}")

        async def replace_map(data: bytes, client: asyncio.StreamWriter) -> None:
            nonlocal asked
            if b"cluster support disabled" in data:
                asked += 1
                data = b"+OK\r\n*1\r\n*1\r\n:1\r\n"
            client.write(data)

        proxy.replies = replace_map
        with pytest.raises(StoreUnavailable) as refusal:
            await store.run("GET", "a")

        assert "cannot be read" in refusal.value.reason
        assert asked <= 8
        await store.close()


def let_own(proxy: TcpProxy, *ports: int) -> None:
    """Let a proxy report that one node owns all slots. Each reply names the next of these ports, up to the last."""
    left = list(ports)

    async def replace_map(data: bytes, client: asyncio.StreamWriter) -> None:
        if b"cluster support disabled" in data:
            port = left.pop(0) if len(left) > 1 else left[0]
            info = f"${len(INFO)}\r\n{INFO}\r\n"
            data = f"{info}*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:{port}\r\n".encode()
        client.write(data)

    proxy.replies = replace_map


@pytest.mark.single_server("proxies stand before the server")
async def test_the_map_does_not_wait_for_a_node_that_hangs(
    server: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph.store.topology.ASK_SECONDS", 60.0)
    monkeypatch.setattr("graph.store.urls.NODE_SECONDS", 60.0)
    async with proxy_to(server.socket) as well, proxy_to(server.socket) as hung:
        store = Store(f"valkey+cluster://127.0.0.1:{hung.port},127.0.0.1:{well.port}")
        hung.open.clear()
        let_own(well, well.port)
        assert await store.run("EXISTS", "a") == 0
        await store.close()


@pytest.mark.single_server("a proxy stands before the server")
async def test_nodes_that_have_all_moved_are_found_through_the_url(server: EmbeddedStore) -> None:
    """The node that owned the slots is gone, and no other node is known."""
    async with proxy_to(server.socket) as proxy:
        store = Store(f"valkey+cluster://127.0.0.1:{proxy.port}")
        let_own(proxy, 1, proxy.port)
        assert await store.run("EXISTS", "a") == 0
        await store.close()


@pytest.mark.single_server("proxies stand before the server")
async def test_a_read_goes_to_the_successor_of_a_node_that_hangs(server: EmbeddedStore) -> None:
    """This happens long before the read's deadline: the map is read again once the node goes silent."""
    async with proxy_to(server.socket) as hung, proxy_to(server.socket) as successor:
        store = Store(f"valkey+cluster://127.0.0.1:{hung.port},127.0.0.1:{successor.port}")
        let_own(hung, hung.port)
        let_own(successor, hung.port)
        assert await store.read([("EXISTS", "a")]) == [0]
        hung.open.clear()
        let_own(successor, successor.port)
        assert await store.read([("EXISTS", "a")]) == [0]
        await store.close()


@pytest.mark.single_server("proxies stand before the server")
async def test_one_redirection_is_enough_for_all_slots(server: EmbeddedStore) -> None:
    """The map is read again in the background."""
    async with proxy_to(server.socket) as old, proxy_to(server.socket) as new:
        store = Store(f"valkey+cluster://127.0.0.1:{old.port}")
        let_own(old, old.port, new.port)
        let_own(new, new.port)
        assert await store.read([("EXISTS", "a")]) == [0]
        answer = old.replies

        async def redirect(data: bytes, client: asyncio.StreamWriter) -> None:
            moved = f"-MOVED {key_slot(b'a')} 127.0.0.1:{new.port}\r\n".encode()
            await answer(moved if data == b":0\r\n" else data, client)

        old.replies = redirect
        assert await store.read([("EXISTS", "a")]) == [0]

        async with asyncio.timeout(PATIENCE):
            while len(list(store.on_one_node(["a", "b"], str, 2))) > 1:  # noqa: ASYNC110 - a map sends no notification
                await asyncio.sleep(0.01)
        await store.close()
