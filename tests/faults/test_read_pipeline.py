"""The read pipeline under faults: no read gets a wrong reply. Each read asks for a key that holds its own name."""

import asyncio
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from graph.errors import StoreUnavailable
from graph.store.commands import Command
from graph.store.store import Store
from server.embedded import Durability, EmbeddedStore
from tests.support.graph_worlds import PATIENCE
from tests.support.tcp_proxy import Forward, TcpProxy, proxy_to, split_at, whole

KEYS = 1000
SHORT = 0.3  # seconds to wait for an answer in tests that must see the wait end
EVERY_KIND: list[Command] = [
    ("GET", "{k}1"),
    ("GET", "none"),
    ("STRLEN", "{k}10"),
    ("HMGET", "hash", "text", "none"),
    ("HGETALL", "hash"),
    ("ZMSCORE", "scores", "a", "b"),
    ("ZRANGE", "scores", 0, -1, "WITHSCORES"),
    ("LRANGE", "none", 0, -1),
    ("EVAL", "return {1, {'two', {}}, false}", 0),
    ("GET", "{k}2"),
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedStore]:
    """Run a server that the test may kill."""
    with EmbeddedStore(tmp_path, Durability.SAFE) as server:
        yield server


@pytest.fixture
async def filled(server: EmbeddedStore) -> AsyncIterator[Store]:
    """Open a store with a thousand keys on the server."""
    store = Store(server.url)
    await store.send([("SET", f"{{k}}{n}", f"{{k}}{n}") for n in range(KEYS)])
    yield store
    await store.close()


@pytest.fixture
async def proxy(filled: Store, server: EmbeddedStore) -> AsyncIterator[TcpProxy]:
    """Run a proxy in front of the server."""
    async with proxy_to(server.socket) as proxy:
        yield proxy


@pytest.fixture
async def store(proxy: TcpProxy) -> AsyncIterator[Store]:
    """Open the store through the proxy."""
    store = Store(f"valkey://127.0.0.1:{proxy.port}")
    yield store
    await store.close()


def name(replies: list[Any]) -> str:
    [value] = replies
    return str(value)


def ask(store: Store, numbers: Sequence[int]) -> "list[asyncio.Future[str]]":
    """Return reads of keys, one per key."""
    return [store.ask([("GET", f"{{k}}{n}")], name) for n in numbers]


async def outcomes(reads: "Sequence[asyncio.Future[str]]", numbers: Sequence[int]) -> tuple[int, int]:
    """Return how many reads got their own reply and how many got none. Assert that no reply is wrong."""
    async with asyncio.timeout(PATIENCE):
        answers = await asyncio.gather(*reads, return_exceptions=True)
    right = sum(answer == f"{{k}}{n}" for n, answer in zip(numbers, answers, strict=True))
    without = sum(isinstance(answer, StoreUnavailable | asyncio.CancelledError) for answer in answers)
    assert right + without == len(reads), [answer for answer in answers if not isinstance(answer, str)][:3]
    return right, without


async def test_killing_the_store_during_a_thousand_reads_gives_no_wrong_reply(
    server: EmbeddedStore, store: Store, proxy: TcpProxy
) -> None:
    """If the store restarts within the deadline, either all reads are answered or none."""
    for restart in (True, False):
        await asyncio.gather(*ask(store, range(KEYS)))
        proxy.replies = withheld
        reads = ask(store, range(KEYS))
        await asyncio.sleep(0.05)

        os.kill(server.pid, signal.SIGKILL)
        proxy.replies = whole
        if restart:
            await asyncio.to_thread(server.ensure)
        right, _ = await outcomes(reads, range(KEYS))
        assert right == (KEYS if restart and right else 0), "those who could wait have all been answered, or none"
        if not restart:
            assert await asyncio.to_thread(server.ensure)
        back = time.perf_counter()
        async with asyncio.timeout(PATIENCE):
            while True:
                with suppress(StoreUnavailable):
                    assert await asyncio.gather(*ask(store, [7])) == ["{k}7"]
                    break
        print(f"answers {time.perf_counter() - back:.3f} s after the store was back; {right} of {KEYS} reads survived")
        assert await outcomes(ask(store, range(KEYS)), range(KEYS)) == (KEYS, 0)


async def withheld(data: bytes, client: asyncio.StreamWriter) -> None:
    """Drop replies."""


async def test_open_reads_are_sent_again_after_a_connection_error(store: Store, proxy: TcpProxy) -> None:
    await asyncio.gather(*ask(store, [1]))
    for place in (1, 7, 500, 3000):
        proxy.replies = cut_at(proxy, place)

        assert await outcomes(ask(store, range(KEYS)), range(KEYS)) == (KEYS, 0)

    assert proxy.connections == 5


def cut_at(proxy: TcpProxy, place: int) -> Forward:
    """Close the connection after this many bytes of replies, once."""

    async def forward(data: bytes, client: asyncio.StreamWriter) -> None:
        proxy.replies = whole
        client.write(data[:place])
        client.close()

    return forward


async def test_a_half_closed_connection_is_replaced(store: Store, proxy: TcpProxy) -> None:
    """The connection is replaced with and without open reads."""
    await asyncio.gather(*ask(store, [1]))
    for _ in range(3):
        proxy.replies = withheld
        reads = ask(store, range(KEYS))
        await asyncio.sleep(0.01)
        proxy.replies = whole
        proxy.half_close()
        assert await outcomes(reads, range(KEYS)) == (KEYS, 0)

        proxy.half_close()
        await asyncio.sleep(0.01)
        assert await outcomes(ask(store, [5]), [5]) == (1, 0)


async def test_replies_may_be_split_at_any_byte(store: Store, proxy: TcpProxy, filled: Store) -> None:
    """Replies with multi-byte characters, maps, nulls and nested lists are read correctly."""
    await filled.send([("HSET", "hash", "text", "雨 ☂", "k", "v"), ("ZADD", "scores", 1.5, "a", 2, "ü")])
    expected = await store.ask(EVERY_KIND, list)
    sizes: list[int] = []

    async def measure(data: bytes, client: asyncio.StreamWriter) -> None:
        sizes.append(len(data))
        client.write(data)

    proxy.replies = measure
    await store.ask(EVERY_KIND, list)
    for place in range(1, sum(sizes)):
        proxy.replies = split_at(place)
        reads = [store.ask([command], name) for command in EVERY_KIND]
        assert await asyncio.gather(*reads) == list(map(str, expected))
    proxy.replies = split_at(*range(1, sum(sizes)))

    assert await store.ask(EVERY_KIND, list) == expected
    assert proxy.connections == 1


@pytest.mark.parametrize(
    "noise", [b"\x00\xff", b"+OK\r\n", b"$3\r\n{k}\r\n", b"*2\r\n$1\r\n", b"%1\r\n", b":x\r\n", b"-ERR what\r\n"]
)
async def test_a_connection_with_invalid_data_is_replaced(store: Store, proxy: TcpProxy, noise: bytes) -> None:
    """Incomplete data and valid replies without a request count as invalid too. Open reads are sent again."""
    await asyncio.gather(*ask(store, [1]))
    for client in proxy.clients:
        client.write(noise)
    await asyncio.sleep(0.02)

    assert await outcomes(ask(store, range(KEYS)), range(KEYS)) == (KEYS, 0)


async def test_a_silent_connection_is_replaced_at_the_oldest_deadline(
    store: Store, proxy: TcpProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest reads fail; later ones are sent again."""
    await asyncio.gather(*ask(store, [1]))
    monkeypatch.setattr("graph.store.store.ANSWER_SECONDS", SHORT)
    monkeypatch.setattr("graph.store.read_pipeline.ANSWER_SECONDS", SHORT)
    proxy.replies = withheld
    early = ask(store, range(100))
    await asyncio.sleep(SHORT / 2)
    monkeypatch.setattr("graph.store.store.ANSWER_SECONDS", PATIENCE)
    late = ask(store, range(100, 200))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    proxy.replies = silent_on(set(proxy.clients))

    assert await outcomes(early, range(100)) == (0, 100)
    assert await outcomes(late, range(100, 200)) == (100, 0)
    assert proxy.connections == 2


def silent_on(clients: set[asyncio.StreamWriter]) -> Forward:
    """Drop the replies to these clients only."""

    async def forward(data: bytes, client: asyncio.StreamWriter) -> None:
        if client not in clients:
            client.write(data)

    return forward


async def test_a_slow_connection_is_kept(store: Store, proxy: TcpProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads past their deadline fail, but the connection stays as long as data arrives."""
    await asyncio.gather(*ask(store, [1]))
    monkeypatch.setattr("graph.store.store.ANSWER_SECONDS", SHORT)
    monkeypatch.setattr("graph.store.read_pipeline.ANSWER_SECONDS", SHORT)

    async def trickle(data: bytes, client: asyncio.StreamWriter) -> None:
        for start in range(0, len(data), len(data) // 20):
            client.write(data[start : start + len(data) // 20])
            await asyncio.sleep(SHORT / 10)

    proxy.replies = trickle
    right, without = await outcomes(ask(store, range(KEYS)), range(KEYS))
    assert right + without == KEYS
    monkeypatch.setattr("graph.store.store.ANSWER_SECONDS", PATIENCE)

    assert await outcomes(ask(store, range(100)), range(100)) == (100, 0)


@pytest.mark.parametrize("seed", range(4))
async def test_random_cancellations_and_split_replies_give_no_wrong_reply(
    store: Store, proxy: TcpProxy, seed: int
) -> None:
    """Even if some connections are aborted, no read gets a wrong reply."""
    chance = random.Random(seed)  # noqa: S311 - it draws test cases

    async def pieces(data: bytes, client: asyncio.StreamWriter) -> None:
        while data:
            size = chance.randint(1, 2000)
            client.write(data[:size])
            data = data[size:]
            await asyncio.sleep(0)
            if chance.random() < 0.01:
                client.transport.abort()
                return

    proxy.replies = pieces
    for _ in range(30):
        numbers = [chance.randrange(KEYS) for _ in range(chance.randint(1, 200))]
        reads = ask(store, numbers)
        for _ in range(chance.randint(0, 4)):
            await asyncio.sleep(0)
        for read in reads:
            if chance.random() < 0.3:
                read.cancel()
        await outcomes(reads, numbers)


async def test_reads_beyond_the_limit_are_refused_and_the_others_answered(
    store: Store, proxy: TcpProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Excess reads fail at once instead of waiting."""
    monkeypatch.setattr("graph.store.store.MAX_WAITING", 3000)
    await asyncio.gather(*ask(store, [1]))
    proxy.open.clear()
    numbers = [n % KEYS for n in range(10_000)]
    reads = []
    for start in range(0, len(numbers), 500):
        reads += ask(store, numbers[start : start + 500])
        await asyncio.sleep(0)

    assert sum(read.done() for read in reads) == 7000
    proxy.open.set()

    assert await outcomes(reads, numbers) == (3000, 7000)
    assert await outcomes(ask(store, range(KEYS)), range(KEYS)) == (KEYS, 0)
