"""Exchanges over a faulty network: each gets its own replies or fails, and a failed connection is replaced."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from graph.errors import StoreUnavailable
from graph.store.node import MAX_CONNECTIONS
from graph.store.store import Store
from server.embedded import EmbeddedStore
from tests.support.graph_worlds import PATIENCE, background, outcomes_of
from tests.support.pair import pair_in
from tests.support.tcp_proxy import TcpProxy, proxy_to, split_at, whole

SHORT = 0.3


@pytest.fixture
async def proxy(running_store: EmbeddedStore) -> AsyncIterator[TcpProxy]:
    async with proxy_to(running_store.socket) as proxy:
        yield proxy


@pytest.fixture
async def store(proxy: TcpProxy, store_url: str) -> AsyncIterator[Store]:
    store = Store(f"valkey://127.0.0.1:{proxy.port}")
    yield store
    await store.close()


async def counts(store: Store, n: int) -> list[Any]:
    return await store.send([("SET", f"{{k}}{n}", n), ("GET", f"{{k}}{n}"), ("HSET", f"{{k}}h{n}", "雨", n)])


async def test_replies_may_be_split_at_any_byte(store: Store, proxy: TcpProxy) -> None:
    assert await counts(store, 0) == ["OK", "0", 1]
    size = len(b"+OK\r\n$1\r\n0\r\n:0\r\n")
    for place in range(1, size):
        proxy.replies = split_at(place)

        assert await counts(store, 0) == ["OK", "0", 0]

    assert proxy.connections == 1


@pytest.mark.parametrize(
    "noise", [b"\x00\xff", b"+OK\r\n", b"$3\r\nabc\r\n", b"*2\r\n$1\r\n", b":x\r\n", b"-ERR no\r\n"]
)
async def test_a_connection_with_invalid_data_is_replaced(store: Store, proxy: TcpProxy, noise: bytes) -> None:
    """Idle connections are replaced, and so are connections that wait for a reply, whose commands are repeated."""
    await counts(store, 1)
    for client in proxy.clients:
        client.write(noise)
    await asyncio.sleep(0.02)
    assert await counts(store, 1) == ["OK", "1", 0]

    async def disturb(data: bytes, client: asyncio.StreamWriter) -> None:
        proxy.replies = whole
        client.write(b"\x00" + data)

    proxy.replies = disturb
    assert await counts(store, 1) == ["OK", "1", 0]
    assert proxy.connections == 3


async def test_commands_are_repeated_after_a_connection_error(store: Store, proxy: TcpProxy) -> None:
    await asyncio.gather(*(counts(store, n) for n in range(20)))

    async def cut(_: bytes, client: asyncio.StreamWriter) -> None:
        proxy.replies = whole
        client.close()

    for _ in range(5):
        proxy.replies = cut
        replies = await asyncio.gather(*(counts(store, n) for n in range(20)))
        assert replies == [["OK", str(n), 0] for n in range(20)]


async def test_a_silent_connection_fails_its_exchange_only(
    proxy: TcpProxy, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails at its deadline, since a repetition could take as long again. Later exchanges use another connection."""
    monkeypatch.setattr("graph.store.single.ANSWER_SECONDS", SHORT)
    store = Store(f"valkey://127.0.0.1:{proxy.port}")
    await counts(store, 1)

    async def withhold(_: bytes, __: asyncio.StreamWriter) -> None:
        proxy.replies = whole

    proxy.replies = withhold
    async with asyncio.timeout(PATIENCE):
        silent, answered = await outcomes_of(counts(store, 1), counts(store, 2))
    assert {type(silent), type(answered)} == {StoreUnavailable, list}
    assert await counts(store, 1) == ["OK", "1", 0]
    await store.close()


async def test_a_blocking_read_is_not_silent(proxy: TcpProxy, store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graph.store.single.ANSWER_SECONDS", SHORT)
    store = Store(f"valkey://127.0.0.1:{proxy.port}")

    assert await store.run("XREAD", "BLOCK", int(3 * SHORT * 1000), "STREAMS", "none", "$") is None

    assert proxy.connections == 1
    await store.close()


async def test_connections_are_limited_and_used_again(store: Store, proxy: TcpProxy) -> None:
    for _ in range(3):
        replies = await asyncio.gather(*(counts(store, n) for n in range(10 * MAX_CONNECTIONS)))
        assert [reply[1] for reply in replies] == [str(n) for n in range(10 * MAX_CONNECTIONS)]

    assert proxy.connections == MAX_CONNECTIONS


async def test_closing_ends_open_exchanges_and_all_connections(proxy: TcpProxy, store_url: str) -> None:
    store = Store(f"valkey://127.0.0.1:{proxy.port}")
    await asyncio.gather(*(counts(store, n) for n in range(5)))
    proxy.open.clear()
    waiting = asyncio.ensure_future(counts(store, 1))
    await asyncio.sleep(0.02)
    assert len(proxy.clients) == 5
    proxy.open.set()
    proxy.replies = split_at(1)

    await store.close()

    await asyncio.wait([waiting])
    async with asyncio.timeout(PATIENCE):
        while proxy.clients:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_crowd_does_not_connect_to_a_server_that_refuses(
    proxy: TcpProxy, store_url: str, tmp_path: Path
) -> None:
    """A few exchanges try to connect, and all fail. Once the server is back, all succeed."""
    store = Store(f"valkey://127.0.0.1:{proxy.port}")
    target, proxy.target = proxy.target, tmp_path / "none"

    outcomes = await outcomes_of(*(counts(store, n) for n in range(500)))

    assert {type(outcome) for outcome in outcomes} == {StoreUnavailable}
    assert proxy.connections <= 5 * MAX_CONNECTIONS
    proxy.target = target
    await asyncio.sleep(0.2)
    replies = await asyncio.gather(*(counts(store, n) for n in range(500)))
    assert [reply[1] for reply in replies] == [str(n) for n in range(500)]
    await store.close()


async def test_connections_to_a_server_that_stays_a_replica_are_kept(
    store: Store, proxy: TcpProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections are dropped at most once a second: otherwise, each refused write would drop all other connections."""
    monkeypatch.setattr("graph.store.node.RECONNECT_SECONDS", 60.0)

    async def refuse(data: bytes, client: asyncio.StreamWriter) -> None:
        client.write(b"-READONLY a replica\r\n" if data.startswith(b":") else data)

    proxy.replies = refuse
    with pytest.raises(StoreUnavailable):
        await store.run("SADD", "a", 1)
    assert proxy.connections == 2


async def test_the_reply_to_a_cancelled_exchange_reaches_nobody(
    store: Store, proxy: TcpProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph.store.store.PRIMARY_SECONDS", 0.05)
    assert await store.run("ECHO", "first") == "first"
    proxy.open.clear()
    assert await store.ask_primaries(("ECHO", "cancelled")) == {}
    async with background(store.run("ECHO", "own")) as asked:
        await asyncio.sleep(0.05)
        proxy.replies = split_at(len(b"$9\r\ncancelled\r\n"))
        proxy.open.set()
        assert await asked == "own"


async def test_a_name_that_moves_away_from_a_demoted_server_is_followed(tmp_path: Path) -> None:
    """No write fails, and reads no longer go to the demoted server. Only a write sent along with reads fails, once."""
    with pair_in(tmp_path) as pair:
        pair.separate()
        async with proxy_to(pair.primary.socket) as proxy:
            stores = [Store(f"valkey://127.0.0.1:{proxy.port}") for _ in range(2)]
            for store in stores:
                await asyncio.gather(*(counts(store, n) for n in range(20)), store.read([("GET", "{k}1")]))
            pair.primary.run("REPLICAOF", "127.0.0.1", 1)
            proxy.target = pair.replica.socket

            replies = await asyncio.gather(*(counts(stores[0], n) for n in range(20)))
            assert [reply[:2] for reply in replies] == [["OK", str(n)] for n in range(20)]
            with pytest.raises(StoreUnavailable):
                await stores[1].read([("SET", "{k}1", "new")])

            pair.replica.run("SET", "{k}1", "new")
            for store in stores:
                assert await store.read([("GET", "{k}1")]) == ["new"]
                await store.close()
