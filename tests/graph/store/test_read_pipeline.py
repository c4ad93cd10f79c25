"""The read pipeline: the reads of an event-loop iteration share a write, and each read gets its own replies."""

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from graph.errors import StoreUnavailable
from graph.store.commands import SlotError, script
from graph.store.store import Store
from server.embedded import EmbeddedStore
from tests.conftest import need
from tests.support.graph_worlds import PATIENCE, outcomes_of
from tests.support.tcp_proxy import proxy_to


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    """Open a store with a hundred keys that hold their own names."""
    store = Store(store_url, single_slot=True)
    await store.send([("MSET", f"{{k}}{n}", f"{{k}}{n}") for n in range(100)])
    yield store
    await store.close()


def get(n: int) -> tuple[str, str]:
    return ("GET", f"{{k}}{n}")


def only(replies: list[Any]) -> Any:
    [reply] = replies
    return reply


@pytest.mark.single_server("a cluster does not keep the order of reads")
async def test_reads_of_one_tick_are_executed_in_order(store: Store) -> None:
    """They share a round trip."""
    trips = store.round_trips

    numbers = await asyncio.gather(*(store.ask([("INCR", "n"), ("INCR", "n")], tuple) for _ in range(300)))

    assert numbers == [(2 * n + 1, 2 * n + 2) for n in range(300)]
    assert store.round_trips == trips + 1
    assert store.in_order


async def test_the_result_is_the_converted_replies(store: Store) -> None:
    """A read without commands has its result at once."""
    nothing = store.ask([], len)
    assert nothing.result() == 0

    assert await store.ask([get(1), get(2)], "+".join) == "{k}1+{k}2"


@pytest.mark.parametrize("error", [ValueError("no"), StopIteration(), StoreUnavailable("no"), AssertionError("no")])
async def test_an_error_of_a_conversion_fails_only_its_read(store: Store, error: Exception) -> None:
    """Other reads of the same write succeed."""

    def fail(_: list[Any]) -> None:
        raise error

    before, bad, after = await outcomes_of(
        store.ask([get(1)], only), store.ask([get(2)], fail), store.ask([get(3)], only)
    )

    assert (before, after) == ("{k}1", "{k}3")
    assert bad is error or (isinstance(bad, RuntimeError) and "StopIteration" in str(bad))


async def test_an_error_of_the_conversion_of_an_empty_read_fails_it(store: Store) -> None:
    with pytest.raises(ValueError, match="not enough"):
        await store.ask([], only)


async def test_an_error_reply_fails_only_its_read(store: Store) -> None:
    reads = [
        store.ask([get(n), ("ZCARD", "{k}1")] if n % 3 == 0 else [get(n), get(n)], lambda replies: replies[0])
        for n in range(60)
    ]

    for n, answer in enumerate(await asyncio.gather(*reads, return_exceptions=True)):
        assert isinstance(answer, ResponseError) if n % 3 == 0 else answer == f"{{k}}{n}"


@pytest.mark.parametrize("word", [object(), None, "\ud800"])
async def test_a_word_that_cannot_be_encoded_fails_only_its_read(store: Store, word: Any) -> None:
    good, bad = await outcomes_of(store.ask([get(1)], only), store.ask([("GET", word)], only))

    assert good == "{k}1"
    assert word == 1 << 70 or isinstance(bad, Exception)


async def test_a_read_of_two_slots_fails_like_a_write(store: Store) -> None:
    """The future fails; `ask` itself does not raise."""
    future = store.ask([("EXISTS", "a{1}", "b{2}")], only)

    with pytest.raises(SlotError):
        await future


async def test_cancelling_reads_does_not_affect_others(store: Store) -> None:
    """Reads can be cancelled before the write and after it."""
    for ticks in range(5):
        reads = [store.ask([get(n)], only) for n in range(100)]
        for _ in range(ticks):
            await asyncio.sleep(0)
        for read in reads[::2]:
            read.cancel()

        assert (await asyncio.gather(*reads, return_exceptions=True))[1::2] == [f"{{k}}{n}" for n in range(1, 100, 2)]


async def test_reads_beyond_the_limit_are_refused_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reads within the limit are answered, and so are later reads."""
    monkeypatch.setattr("graph.store.store.MAX_WAITING", 50)

    reads = [store.ask([get(n)], only) for n in range(60)]
    for refused in reads[50:]:
        error = refused.exception()
        assert isinstance(error, StoreUnavailable)
        assert "50 commands wait" in error.reason

    assert await asyncio.gather(*reads[:50]) == [f"{{k}}{n}" for n in range(50)]
    assert await store.ask([get(60)], only) == "{k}60"


@pytest.mark.single_server("a proxy stands before the server")
async def test_closing_fails_open_and_later_reads(single_store: EmbeddedStore) -> None:
    async with proxy_to(single_store.socket) as proxy:
        store = Store(f"valkey://127.0.0.1:{proxy.port}")
        await store.ask([get(1)], only)
        proxy.open.clear()
        waiting = store.ask([get(1)], only)
        await asyncio.sleep(0.01)
        await store.close()
        late = store.ask([get(2)], only)

        for read in (waiting, late):
            with pytest.raises(StoreUnavailable):
                await read


def test_a_store_can_be_used_on_one_event_loop_after_another(store_url: str) -> None:
    """Each event loop gets its own read pipeline."""
    store = Store(store_url)

    async def use(n: int) -> Any:
        answers = await asyncio.gather(*(store.ask([("ECHO", n)], only) for _ in range(5)))
        await store.close()
        return answers

    assert [asyncio.run(use(n)) for n in range(3)] == [5 * [str(n)] for n in range(3)]


async def test_bytes_that_are_not_utf_8_are_preserved(store: Store, raw: Redis) -> None:
    """They are decoded as surrogate escapes. Other replies are not affected."""
    await raw.set("{k}bad", b"a\xff")

    assert await store.ask([get(1), ("GET", "{k}bad"), get(2)], tuple) == ("{k}1", "a\udcff", "{k}2")


async def test_replies_are_those_of_resp3(store: Store) -> None:
    await store.send([("ZADD", "z", 5, "a"), ("HSET", "h", "x", 1)])

    assert await store.ask([("ZMSCORE", "z", "a", "b"), ("HGETALL", "h"), ("GET", "none")], list) == [
        [5.0, None],
        {"x": "1"},
        None,
    ]


async def test_push_messages_are_ignored(store: Store, raw: Redis) -> None:
    """Push messages are ignored alone and between replies."""
    await store.ask([("CLIENT", "TRACKING", "ON"), get(1)], only_last)
    for n in range(20):
        await raw.set("{k}1", n)

        assert await asyncio.gather(*(store.ask([get(i)], only) for i in range(1, 5))) == [
            str(n),
            "{k}2",
            "{k}3",
            "{k}4",
        ]


def only_last(replies: list[Any]) -> Any:
    return replies[-1]


async def test_missing_scripts_are_loaded_and_the_order_is_kept(store: Store, raw: Redis) -> None:
    """Reads after one that lacks a script are executed after it."""
    call = script("last_number").call(["{log}"], 0)
    for _ in range(3):
        await raw.script_flush()
        reads = [store.ask([get(1)], only), *(store.ask([call, ("INCR", "n")], only_last) for _ in range(5))]

        first, *numbers = await asyncio.gather(*reads)

        assert first == "{k}1"
        assert numbers == sorted(set(numbers))


async def test_an_unknown_script_fails_only_its_read(store: Store) -> None:
    """It is not loaded repeatedly."""
    bad, good = await outcomes_of(store.ask([("EVALSHA", "0" * 40, 0)], only), store.ask([get(1)], only))

    assert isinstance(bad, ResponseError)
    assert good == "{k}1"


@pytest.mark.single_server("a proxy stands before the server")
async def test_the_read_pipeline_connects_with_the_settings_of_the_url(
    store: Store, raw: Redis, single_store: EmbeddedStore
) -> None:
    """It connects over TCP, with user, password and database. A wrong password raises StoreUnavailable."""
    await store.run("ACL", "SETUSER", "reader", "on", ">secret", "~*", "+@all")
    try:
        async with proxy_to(single_store.socket) as proxy:
            right = Store(f"valkey://reader:secret@127.0.0.1:{proxy.port}/3")
            await right.run("SET", "a", "in 3")
            assert await right.ask([("GET", "a"), ("ACL", "WHOAMI")], tuple) == ("in 3", "reader")
            await right.close()

            wrong = Store(f"valkey://reader:wrong@127.0.0.1:{proxy.port}/3")
            with pytest.raises(StoreUnavailable):
                await wrong.ask([("GET", "a")], only)
            await wrong.close()
        assert await store.ask([("GET", "a")], only) is None
    finally:
        await store.run("ACL", "DELUSER", "reader")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Create a key and a certificate for 127.0.0.1."""
    need(bool(shutil.which("openssl")), "openssl")
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run([*command.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return key, certificate


@pytest.mark.single_server("a proxy stands before the server")
async def test_the_read_pipeline_supports_tls(
    single_store: EmbeddedStore, certificate: tuple[Path, Path], store: Store
) -> None:
    """An unknown certificate is refused."""
    key, public = certificate
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(public, key)
    async with proxy_to(single_store.socket, context) as proxy:
        trusting = Store(f"valkeys://127.0.0.1:{proxy.port}?ssl_ca_certs={public}")
        for _ in range(3):
            assert await trusting.ask([get(n) for n in range(100)], list) == [f"{{k}}{n}" for n in range(100)]
        await trusting.close()

        doubting = Store(f"valkeys://127.0.0.1:{proxy.port}")
        with pytest.raises(StoreUnavailable):
            await doubting.ask([get(1)], only)
        await doubting.close()


@pytest.mark.single_server("a proxy stands before the server")
async def test_reads_are_held_back_while_the_connection_is_congested(store: Store, single_store: EmbeddedStore) -> None:
    """They do not fill the connection's buffer, and are answered afterwards."""
    text = "x" * 10_000
    async with proxy_to(single_store.socket) as proxy:
        slow = Store(f"valkey://127.0.0.1:{proxy.port}")
        assert await slow.ask([get(0)], only) == "{k}0"
        proxy.open.clear()
        reads: list[asyncio.Future[Any]] = []
        for _ in range(30):
            reads += [slow.ask([("ECHO", f"{len(reads) + n}{text}")], only) for n in range(100)]
            await asyncio.sleep(0)
        proxy.open.set()

        async with asyncio.timeout(PATIENCE):
            for n, read in enumerate(reads):
                assert await read == f"{n}{text}"
        await slow.close()


async def test_after_an_idle_connection_was_closed_reads_succeed(store: Store, raw: Redis) -> None:
    for n in range(3):
        assert await store.ask([get(n)], only) == f"{{k}}{n}"
        await store.run("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await asyncio.sleep(0.01)
