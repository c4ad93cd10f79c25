"""Look-ups through the near cache, on a server with concurrent writers: they show nothing from before the request."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from graph.store import near_cache
from graph.store.commands import Command
from graph.store.near_cache import Moment
from graph.store.recall import LookUp, both_near, recall
from graph.store.store import HELD_TICKS, Store, unchanged
from server.embedded import EmbeddedStore
from tests.support.graph_worlds import PATIENCE, counted
from tests.support.raw import open_blocking
from tests.support.stopped import stopped
from tests.support.tcp_proxy import TURNS, TcpProxy, proxy_to

KEYS = 8
WRITES = 400
CUT_AFTER = 100
READERS = 6

pytestmark = pytest.mark.single_server("tests/faults/test_near_cache_on_cluster.py is about clusters")


def key_of(number: int) -> str:
    return f"{{k}}{number}"


VALUES: LookUp[str | None] = LookUp("GET", key_of, (), lambda _, rows: rows)
FIELDS: LookUp[Any] = LookUp("HMGET", lambda number: f"{{h}}{number}", ("a", "b"), lambda _, rows: rows)


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    """Open a store with a near cache and a connection."""
    store = Store(store_url, near_cache=100)
    await store.read([("EXISTS", "k")])
    yield store
    await store.close()


async def run(raw: Redis, *command: Any) -> None:
    await raw.execute_command(*command)  # type: ignore[no-untyped-call] # redis-py has no types here


async def request(store: Store) -> Moment | None:
    """Start a request, and wait for the reply to its first read."""
    moment = store.begin()
    await store.read([("EXISTS", "session")])
    return moment


async def look(store: Store, *numbers: int) -> list[str | None]:
    """Return the values that a new request sees after its first read."""
    return await recall(store, VALUES, numbers, await request(store))


async def test_a_cache_that_finds_little_is_asked_again_after_a_rest(
    store: Store, raw: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """During the rest, look-ups read from the store and do not make it track keys."""
    monkeypatch.setattr(near_cache, "REST", 3)
    await raw.set("{k}1", "one")
    assert await look(store, 1) == ["one"]
    assert store.near is not None
    store.near._judge()  # after one look-up, which found nothing
    for _ in range(3):
        async with counted(store) as resting:
            assert await look(store, 1) == ["one"]
        assert resting.commands == 2
    async with counted(store) as rested:
        assert await look(store, 1) == ["one"]
    assert rested.commands == 1


async def test_a_known_value_costs_no_command(store: Store, raw: Redis) -> None:
    """An absent key is known too. A miss costs the read and the command that lets the server track its key."""
    await raw.set("{k}1", "one")
    moment = await request(store)
    async with counted(store) as first:
        assert await recall(store, VALUES, [1, 2], moment) == ["one", None]
    assert (first.round_trips, first.commands) == (1, 4)

    moment = await request(store)
    async with counted(store) as again:
        assert await recall(store, VALUES, [2, 1, 2], moment) == [None, "one", None]
    assert (again.round_trips, again.commands) == (0, 0)

    async with counted(store) as partly:
        assert await recall(store, VALUES, [3, 1], moment) == [None, "one"]
    assert (partly.round_trips, partly.commands) == (1, 2)


async def test_the_first_read_of_a_request_goes_to_the_store(store: Store, store_url: str) -> None:
    """The write is newer than every reply that the process has received, and its invalidation has not arrived yet."""
    with open_blocking(store_url) as blocking:
        blocking.set("{k}1", "old")
        assert await look(store, 1) == ["old"]
        blocking.set("{k}1", "new")

        assert await recall(store, VALUES, [1], store.begin()) == ["new"]


async def test_a_first_read_of_known_values_is_not_tracked_again(store: Store) -> None:
    await look(store, 1)

    async with counted(store) as first:
        await recall(store, VALUES, [1], store.begin())

    assert first.commands == 1


async def test_replies_to_earlier_reads_permit_nothing(store: Store, raw: Redis, single_store: EmbeddedStore) -> None:
    """The read was sent before the request began, and its reply arrives afterwards."""
    await raw.set("{k}1", "old")
    assert await look(store, 1) == ["old"]
    with stopped(single_store.pid):
        early = store.ask([("EXISTS", "k")], unchanged)
        for _ in range(HELD_TICKS + 2):
            await asyncio.sleep(0)
        moment = store.begin()
    await early
    async with counted(store) as cost:
        await recall(store, VALUES, [1], moment)
    assert cost.commands == 1


WAYS: dict[str, list[Command]] = {
    "set": [("SET", "{k}1", "new")],
    "append": [("APPEND", "{k}1", "new")],
    "delete": [("DEL", "{k}1")],
    "unlink": [("UNLINK", "{k}1")],
    "script": [("EVAL", "return redis.call('SET', KEYS[1], 'new')", 1, "{k}1")],
    "rename": [("SET", "{k}x", "new"), ("RENAME", "{k}x", "{k}1")],
    "expiry": [("PEXPIREAT", "{k}1", 1)],
    "flush": [("FLUSHALL",)],
}


@pytest.mark.parametrize("way", WAYS)
async def test_every_way_of_writing_is_noticed(store: Store, raw: Redis, way: str) -> None:
    """A request that begins after the write was acknowledged sees the new value."""
    await raw.set("{k}1", "old")
    assert await look(store, 1) == ["old"]

    for command in WAYS[way]:
        await run(raw, *command)

    [now] = await look(store, 1)
    assert now == await raw.get("{k}1") != "old"


async def test_own_writes_are_noticed(store: Store) -> None:
    """Writes use other connections than reads."""
    for number in range(20):
        await store.send([("SET", "{k}1", number), ("HSET", "{h}1", "a", number)])
        assert await look(store, 1) == [str(number)]
        assert await recall(store, FIELDS, [1], await request(store)) == [[str(number), None]]


async def test_keys_that_the_server_tracks_no_longer_are_read_again(store: Store, raw: Redis) -> None:
    """The server's table of tracked keys is limited, and the server invalidates the keys that it drops."""
    await raw.config_set("tracking-table-max-keys", 10)
    try:
        numbers = list(range(60))
        await look(store, *numbers)
        for number in numbers:
            await raw.set(key_of(number), number)
        assert await look(store, *numbers) == [str(number) for number in numbers]
    finally:
        await raw.config_set("tracking-table-max-keys", 1_000_000)


async def test_other_reads_are_not_tracked(store: Store, raw: Redis) -> None:
    """The server sends no message about writes to keys that are not kept."""
    await store.read([("GET", "{k}1")])
    await raw.set("{k}1", "new")
    await store.read([("EXISTS", "k")])

    assert store.near is not None
    assert store.near.invalidations == 0


async def test_a_new_connection_begins_with_nothing(store: Store, raw: Redis) -> None:
    """Writes made while there was no connection are seen, although no message announced them."""
    await raw.set("{k}1", "old")
    assert await look(store, 1) == ["old"]
    await run(raw, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    await raw.set("{k}1", "new")

    assert await look(store, 1) == ["new"]
    assert await look(store, 1) == ["new"]
    async with counted(store) as cost:
        await look(store, 1)
    assert cost.commands == 1


def executed_gets(client: Any) -> int:
    """Return how many times the server has executed GET."""
    return int(client.info("commandstats").get("cmdstat_get", {"calls": 0})["calls"])


async def test_a_flush_is_noticed_before_the_replies_that_arrive_with_it(store: Store, store_url: str) -> None:
    """A value that was read before the flush is shown once, and not kept."""
    pipeline: Any = store._read_pipeline
    with open_blocking(store_url) as blocking:
        blocking.set("{k}1", "old")
        pipeline.connection._transport.pause_reading()
        moment, executed = store.begin(), executed_gets(blocking)
        reading = recall(store, VALUES, [1], moment)
        while executed_gets(blocking) == executed:  # noqa: ASYNC110 - a server sends no notification
            await asyncio.sleep(0)
        blocking.flushall()
        blocking.ping()  # before the server replies to this, it sends the invalidations of the flush
    pipeline.connection._transport.resume_reading()
    assert await reading == ["old"]

    assert await recall(store, VALUES, [1], moment) == [None]


@pytest.mark.parametrize("forbidden", ["tracking", "caching"])
async def test_without_client_tracking_everything_is_read(
    store_url: str, raw: Redis, caplog: pytest.LogCaptureFixture, forbidden: str
) -> None:
    """The log says so."""
    await run(raw, "ACL", "SETUSER", "plain", "on", "nopass", "~*", "+@all", f"-client|{forbidden}")
    user = "username=plain&password=x"
    store = Store(f"{store_url}{'&' if '?' in store_url else '?'}{user}", near_cache=100)
    try:
        for number in range(3):
            await raw.set("{k}1", number)
            assert await look(store, 1) == [str(number)]
        async with counted(store) as cost:
            await look(store, 1)
        assert cost.commands == 2
    finally:
        await store.close()
        await run(raw, "ACL", "DELUSER", "plain")
    assert "The near cache is off, because the store refuses client tracking" in caplog.text


async def test_a_tracked_read_is_answered_by_a_connection_that_does_not_track(store: Store, raw: Redis) -> None:
    """Nothing is kept, as after a failover to a server that refuses to track keys."""
    assert store.near is not None
    await raw.set("{k}1", "one")
    await store.read([("CLIENT", "TRACKING", "OFF")])

    assert await look(store, 1, 2) == ["one", None]
    assert len(store.near) == 0


async def test_an_error_reply_fails_the_look_up(store: Store, raw: Redis) -> None:
    await raw.lpush("{k}1", "not a string")

    with pytest.raises(Exception, match="WRONGTYPE"):
        await look(store, 1, 2)
    assert await look(store, 2) == [None]


async def test_a_cancelled_look_up_does_not_disturb_others(store: Store, raw: Redis) -> None:
    await raw.set("{k}1", "one")
    moment = await request(store)
    cancelled, other = recall(store, VALUES, [1], moment), recall(store, VALUES, [1, 2], moment)
    await asyncio.sleep(0)
    cancelled.cancel()

    assert await other == ["one", None]
    assert await look(store, 1) == ["one"]


async def test_two_values_are_near_together_or_not_at_all(store: Store, raw: Redis) -> None:
    """Otherwise one could be older than the other."""
    await look(store, 1)
    both: tuple[LookUp[Any], LookUp[Any]] = VALUES, FIELDS
    moment = await request(store)
    assert both_near(store, both, [1, 2], moment) == ({}, [1, 2])

    await recall(store, FIELDS, [1], moment)

    assert both_near(store, both, [1, 2], moment) == ({1: (None, [None, None])}, [2])
    assert both_near(store, both, [1], store.begin()) == ({}, [1])
    assert both_near(store, both, [1], None) == ({}, [1])


async def test_concurrent_requests_see_no_value_from_before_they_began(
    store_url: str, single_store: EmbeddedStore
) -> None:
    """Replies are split at any byte, connections are killed, and writers use plain commands, scripts and deletions."""
    rng = random.Random(1)  # noqa: S311 - a repeatable order
    async with proxy_to(single_store.socket) as proxy:

        async def split(data: bytes, client: asyncio.StreamWriter) -> None:
            place = rng.randrange(len(data) + 1)
            for piece in (data[:place], data[place:]):
                client.write(piece)
                for _ in range(rng.randrange(TURNS)):
                    await asyncio.sleep(0)

        proxy.replies = split
        store = Store(f"valkey://127.0.0.1:{proxy.port}", near_cache=KEYS)
        writers = [Store(store_url) for _ in range(2)]
        try:
            async with asyncio.timeout(PATIENCE):
                await race(store, writers, proxy, rng)
        finally:
            for each in (store, *writers):
                await each.close()


async def race(store: Store, writers: list[Store], proxy: TcpProxy, rng: random.Random) -> None:
    """Let writers count up, and check that requests see at least the values that were acknowledged before they began.

    Stop after enough writes, known values and invalidations.
    """
    assert store.near is not None
    near, acknowledged = store.near, [0] * KEYS
    done, cut = asyncio.Event(), [0]

    async def write(writer: Store, numbers: range) -> None:
        for count in itertools.count(1):
            if count > WRITES and near.hits > WRITES and near.invalidations > WRITES:
                return
            number = rng.choice(numbers)
            change = acknowledged[number] + 1
            script = "redis.call('DEL', KEYS[1]) return redis.call('SET', KEYS[1], ARGV[1])"
            plain: Command = ("SET", key_of(number), change)
            await writer.send([rng.choice([plain, ("EVAL", script, 1, key_of(number), change)])])
            acknowledged[number] = change
            if near.hits > cut[-1] + CUT_AFTER:
                cut.append(near.hits)
                for client in proxy.clients:
                    client.transport.abort()
            if rng.random() < 0.5:
                await asyncio.sleep(0)

    async def read() -> None:
        while not done.is_set():
            least = list(acknowledged)
            moment = store.begin()
            if rng.random() < 0.9:
                await store.read([("EXISTS", "session")])
            for _ in range(rng.randrange(1, 4)):
                numbers = rng.sample(range(KEYS), 3)
                for number, value in zip(numbers, await recall(store, VALUES, numbers, moment), strict=True):
                    assert int(value or 0) >= least[number], "a value from before the request, or from before another"
                    least[number] = int(value or 0)

    async with asyncio.TaskGroup() as group:
        readers = [group.create_task(read()) for _ in range(READERS)]
        writes = [
            asyncio.ensure_future(write(writer, range(half * KEYS // 2, (half + 1) * KEYS // 2)))
            for half, writer in enumerate(writers)
        ]
        try:
            await asyncio.gather(*writes)
        finally:
            done.set()
        await asyncio.gather(*readers)


@pytest.mark.parametrize("piece", [1, 7, 1000])
async def test_invalidations_may_arrive_in_pieces_while_no_read_waits(
    store_url: str, single_store: EmbeddedStore, raw: Redis, piece: int
) -> None:
    """The connection stays open, and the values of other keys are kept."""
    async with proxy_to(single_store.socket) as proxy:

        async def in_pieces(data: bytes, client: asyncio.StreamWriter) -> None:
            for start in range(0, len(data), piece):
                client.write(data[start : start + piece])
                for _ in range(TURNS):
                    await asyncio.sleep(0)

        store = Store(f"valkey://127.0.0.1:{proxy.port}", near_cache=100)
        try:
            await store.read([("EXISTS", "k")])
            await look(store, *range(30))
            proxy.replies = in_pieces
            await run(
                raw,
                "EVAL",
                "for _, key in ipairs(KEYS) do redis.call('SET', key, 'new') end",
                29,
                *map(key_of, range(29)),
            )
            assert store.near is not None
            async with asyncio.timeout(PATIENCE):
                while len(store.near) > 1:  # noqa: ASYNC110 - nothing tells
                    await asyncio.sleep(0.001)
            assert (len(store.near), proxy.connections) == (1, 1)
            assert await look(store, 0, 29) == ["new", None]
        finally:
            await store.close()
